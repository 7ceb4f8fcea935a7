"""Dry runs of training scripts at several batches, and forecasts from their traces."""

from __future__ import annotations

import json
import os
import subprocess
import sys
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
    """A dry run that ended."""

    batch: int
    peaks: Peaks
    trace: Path


@dataclass(frozen=True)
class Forecast:
    batch: int
    peaks: Peaks
    # Shares of the forecast within which the truth should lie.
    bands: dict[str, tuple[float, float]]
    matched: float


class Runs:
    """Scripts, run on the simulated device by one process that loads PyTorch once."""

    def __init__(self, build: Build, folder: Path) -> None:
        self.build = build
        self.folder = folder
        environment = os.environ | {
            "LD_PRELOAD": build.preload(),
            "VRAMTRACE_SIM_GPU": GPU,
            "VRAMTRACE_SIM_TOTAL": TOTAL,
            "VRAMTRACE_OUTPUT": f"{folder}/%p.vtrace",
            "PYTHONUNBUFFERED": "1",
        }
        self.process = subprocess.Popen(
            [sys.executable, FOLDER / "run_jobs.py"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Runs:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    def run(self, name: str, script: Path, arguments: tuple[str, ...], batch: int) -> Dry:
        folder = self.folder / f"{name}-{batch}"
        folder.mkdir()
        job = {
            "script": str(script),
            "arguments": [*arguments, "--batch", str(batch)],
            "folder": str(folder),
        }
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        child = self.process.stdout.readline().strip()
        peaks = folder / "peaks.json"
        if not peaks.is_file():
            output = folder / "output.txt"
            printed = output.read_text(errors="replace")[-2000:] if output.is_file() else "it did not start"
            raise RuntimeError(f"{name} with batch {batch} failed:\n{printed}")
        return Dry(batch, Peaks(**json.loads(peaks.read_text())), self.folder / f"{child}.vtrace")


def forecast(build: Build, recordings: list[Dry], batches: list[int]) -> list[Forecast]:
    found = sorted(build.folder.rglob("batch_forecast"))
    if not found:
        raise FileNotFoundError(f"batch_forecast: not in {build.folder}; build it")
    words: list[str | Path] = [found[0]]
    for recording in recordings:
        words += [recording.trace, str(recording.batch)]
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
