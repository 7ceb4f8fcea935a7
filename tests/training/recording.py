"""Runs programs under the recorder on a simulated GPU, from a build folder, and reads what came of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
TIMEOUT_SECONDS = 240


class Build:
    """The built files; their folders are those of an installation."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.vramtrace = self._find("vramtrace", "bin/vramtrace")
        self.recorder = self._find("libvramtrace.so", "lib/libvramtrace.so")
        self.simulator = self._find("preload.txt", "lib/vramtrace/simulator/preload.txt").parent

    def _find(self, what: str, *places: str) -> Path:
        for place in places:
            if (self.folder / place).is_file():
                return self.folder / place
        raise FileNotFoundError(f"{what}: not in {self.folder}; build it, or set VRAMTRACE_BUILD")

    def preload(self, recorded: bool = True) -> str:
        names = (self.simulator / "preload.txt").read_text().split()
        libraries = [self.recorder] if recorded else []
        return ":".join(str(path) for path in [*libraries, *(self.simulator / name for name in names)])


def default_build() -> Build:
    return Build(Path(os.environ.get("VRAMTRACE_BUILD", ROOT / "build" / "release")).resolve())


@dataclass
class Run:
    status: int
    output: str
    errors: str
    trace: Path
    seconds: float
    peak_host_bytes: int


def run_python(
    build: Build,
    arguments: list[str | Path],
    trace: Path,
    gpu: str,
    recorded: bool = True,
    python: str | Path = sys.executable,
    **environment: str,
) -> Run:
    """`python ARGUMENTS` with LD_PRELOAD alone: no wrapper has a hand in it."""
    own = {
        "LD_PRELOAD": build.preload(recorded),
        "VRAMTRACE_SIM_GPU": gpu,
        "VRAMTRACE_OUTPUT": str(trace),
        "PYTHONUNBUFFERED": "1",
    }
    started = time.monotonic()
    with subprocess.Popen(
        [str(python), *map(str, arguments)],
        env=os.environ | own | environment,
        cwd=trace.parent,
        stdin=subprocess.DEVNULL,
        stdout=(trace.parent / "stdout").open("w"),
        stderr=(trace.parent / "stderr").open("w"),
    ) as process:
        status, usage = _wait(process)
    return Run(
        status,
        (trace.parent / "stdout").read_text(errors="replace"),
        (trace.parent / "stderr").read_text(errors="replace"),
        trace,
        time.monotonic() - started,
        usage.ru_maxrss * 1024,
    )


def _wait(process: subprocess.Popen) -> tuple[int, os.struct_rusage]:
    """Waits with wait4, which tells the child's own peak of host memory."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, usage
        if time.monotonic() > deadline:
            process.kill()
            raise TimeoutError(f"a training script ran longer than {TIMEOUT_SECONDS} s")
        time.sleep(0.01)


def run_with_referee(
    build: Build,
    script: str,
    arguments: list[str],
    folder: Path,
    gpu: str,
    python: str | Path = sys.executable,
) -> tuple[Run, dict]:
    side_file = folder / "referee.json"
    command = [FOLDER / "referee.py", side_file, FOLDER / script, *arguments]
    run = run_python(build, command, folder / "run.vtrace", gpu, python=python)
    if not side_file.is_file():
        raise RuntimeError(f"the referee did not finish (status {run.status}):\n{run.errors[-3000:]}")
    return run, json.loads(side_file.read_text())


def vramtrace(build: Build, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [build.vramtrace, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)


def analyze(build: Build, trace: Path) -> dict:
    done = vramtrace(build, "analyze", "--format", "json", trace)
    if done.returncode != 0:
        raise RuntimeError(f"vramtrace analyze: status {done.returncode}\n{done.stderr[-3000:]}")
    return json.loads(done.stdout)
