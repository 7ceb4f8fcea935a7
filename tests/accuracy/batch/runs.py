"""Dry runs of training scripts at several batches, and forecasts from their traces."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from recording import Build

FOLDER = Path(__file__).resolve().parent
# A card that refuses nothing: the truth is what the run takes, not whether a card has it.
GPU = "h200"
TOTAL = "1024GiB"


@dataclass(frozen=True)
class Peaks:
    allocated: int
    reserved: int


@dataclass(frozen=True)
class Dry:
    """A dry run."""

    status: int
    peaks: Peaks | None  # None: it did not end well
    trace: Path
    printed: str


@dataclass(frozen=True)
class Forecast:
    batch: int
    peaks: Peaks
    # Shares of the forecast within which the truth should lie.
    bands: dict[str, tuple[float, float]]
    matched: float


class Runs:
    """Scripts, run on the simulated device by one process that loads PyTorch once. What the folder holds of
    an earlier run of the same name is taken as it is: delete it when programs or the simulator change."""

    def __init__(self, build: Build, folder: Path) -> None:
        self.build = build
        self.folder = folder
        self.process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Runs:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is None:
            return
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    def start(self) -> subprocess.Popen[str]:
        environment = os.environ | {
            "LD_PRELOAD": self.build.preload(),
            "VRAMTRACE_SIM_GPU": GPU,
            "VRAMTRACE_SIM_TOTAL": TOTAL,
            "VRAMTRACE_OUTPUT": f"{self.folder}/%p.vtrace",
            "PYTHONUNBUFFERED": "1",
            "HF_HUB_OFFLINE": "1",
        }
        return subprocess.Popen(
            [sys.executable, FOLDER / "run_jobs.py"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, name: str, script: Path, arguments: tuple[str, ...], apply: str = "") -> Dry:
        folder = self.folder / name
        done = folder / "status"
        if not done.is_file():
            folder.mkdir(exist_ok=True)
            job = {"script": str(script), "arguments": arguments, "folder": str(folder), "apply": apply}
            child, status = self.execute(job)
            trace = self.folder / f"{child}.vtrace"
            if trace.is_file():
                trace.rename(folder / "run.vtrace")
            done.write_text(status)
        peaks = folder / "peaks.json"
        output = folder / "output.txt"
        return Dry(
            int(done.read_text()),
            Peaks(**json.loads(peaks.read_text())) if peaks.is_file() else None,
            folder / "run.vtrace",
            output.read_text(errors="replace") if output.is_file() else "it did not start",
        )

    def execute(self, job: dict) -> tuple[str, str]:
        """The number of the process that ran the job, and its exit status."""
        self.process = self.process or self.start()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        child, status = self.process.stdout.readline().split()
        return child, status


@contextlib.contextmanager
def folder_of_runs(name: str) -> Iterator[Path]:
    """VRAMTRACE_ACCURACY_KEEP: a folder whose dry runs are taken again, and stay (a gigabyte)."""
    kept = os.environ.get("VRAMTRACE_ACCURACY_KEEP")
    if kept is not None:
        folder = Path(kept).resolve() / name
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix=f"vramtrace-{name}-") as scratch:
        yield Path(scratch)


def forecast(build: Build, recordings: dict[int, Dry], batches: list[int]) -> list[Forecast]:
    """`recordings`: by batch."""
    found = sorted(build.folder.rglob("batch_forecast"))
    if not found:
        raise FileNotFoundError(f"batch_forecast: not in {build.folder}; build it")
    words: list[str | Path] = [found[0]]
    for batch, recording in recordings.items():
        words += [recording.trace, str(batch)]
    words += ["--", *map(str, batches)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return [
        Forecast(
            row["batch"],
            Peaks(row["allocated"], row["reserved"]),
            {
                counter: (row[f"{counter}_low"], row[f"{counter}_high"])
                for counter in ("allocated", "reserved")
            },
            row["matched"],
        )
        for row in rows
    ]
