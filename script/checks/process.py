"""Running programs with their output in a log file, and saying what is being done."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "build" / "test-logs"
JOBS = len(os.sched_getaffinity(0))
TAIL_LINES = 60


def say(text: str) -> None:
    print(f"test: {text}", file=sys.stderr, flush=True)


def run(
    log: str,
    command: list[str | Path],
    environment: dict[str, str] | None = None,
    timeout: float = 1800,
    folder: Path = ROOT,
) -> tuple[int, str]:
    """Exit status and the end of the output; all of it is in build/test-logs/<log>.log."""
    LOGS.mkdir(parents=True, exist_ok=True)
    path = LOGS / f"{log}.log"
    started = time.monotonic()
    with path.open("w") as output:
        output.write(f"$ {' '.join(map(str, command))}\n")
        output.flush()
        try:
            status = subprocess.run(
                command,
                cwd=folder,
                env=os.environ | (environment or {}),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=timeout,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            status = 124
            output.write(f"stopped: it took longer than {timeout:.0f} s\n")
        except OSError as error:
            status = 127
            output.write(f"{error}\n")
    say(f"  {log}: {time.monotonic() - started:.1f} s, status {status}")
    return status, "\n".join(path.read_text(errors="replace").splitlines()[-TAIL_LINES:])


def tracked_files(*patterns: str) -> list[Path]:
    """Files that git tracks or would track, so that a file forgotten by `git add` is checked too."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns]
    listed = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout.decode()
    paths = (ROOT / name for name in sorted(set(listed.split("\0"))) if name)
    return [path for path in paths if path.is_file()]
