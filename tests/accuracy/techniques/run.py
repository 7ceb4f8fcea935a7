"""Forecasts of techniques against runs with them applied for real.

python -m tests.accuracy.techniques.run [PROGRAM...] [--with TECHNIQUES]... [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from recording import Build, Run, analyze, default_build, run_python

from .cases import PAIRS, PROGRAMS, SINGLE, Case

GPU = "h200"
REFUSED = 2  # exit status of a program that a technique cannot be applied to


@dataclass
class Peaks:
    allocated: int
    reserved: int


@dataclass
class Result:
    case: Case
    predicted: Peaks | None = None
    real: Peaks | None = None
    why: str = ""  # there are no peaks

    def error(self, field: str) -> float:
        """Of the forecast, in percent of what the run took."""
        assert self.predicted is not None
        assert self.real is not None
        return 100 * (getattr(self.predicted, field) / getattr(self.real, field) - 1)

    @property
    def complete(self) -> bool:
        return self.predicted is not None and self.real is not None


class Runner:
    """Dry runs, kept in a folder so that a base is run once."""

    def __init__(self, build: Build, folder: Path) -> None:
        self.build = build
        self.folder = folder
        found = sorted(build.folder.rglob("technique_predict"))
        if not found:
            raise FileNotFoundError(f"technique_predict: not in {build.folder}; build it")
        self.predictor = found[0]

    def trace(self, name: str, program: tuple[Path, str], techniques: str) -> Run:
        folder = self.folder / f"{name} {techniques}".strip().replace(";", "+").replace(":", "-")
        folder.mkdir(exist_ok=True)
        done = folder / "status"
        trace = folder / "run.vtrace"
        if done.is_file():
            return Run(int(done.read_text()), "", (folder / "stderr").read_text(), trace, 0, 0)
        environment = {"VRAMTRACE_APPLY": techniques, "VRAMTRACE_DRY_RUN_STEPS": "3"}
        script, options = program
        run = run_python(self.build, [script, *options.split()], trace, GPU, **environment)
        done.write_text(str(run.status))
        return run

    def predict(self, trace: Path, techniques: str) -> dict:
        command = [self.predictor, trace, *techniques.split(";")]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        if done.returncode != 0:
            raise RuntimeError(f"technique_predict {techniques}: {done.stderr}")
        return json.loads(done.stdout)

    def replayed(self, trace: Path) -> Peaks:
        """Of the recorded run as it is."""
        command = [self.predictor, trace]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
        answer = json.loads(done.stdout)
        return Peaks(answer["allocated"], answer["reserved"])

    def measure(self, name: str, program: tuple[Path, str], techniques: str) -> Result:
        result = Result(Case(name, techniques))
        base = self.trace(name, program, "")
        if base.status != 0:
            raise RuntimeError(f"{name}: status {base.status}\n{base.errors[-2000:]}")
        answer = self.predict(base.trace, techniques)
        run = self.trace(name, program, techniques)
        if run.status == REFUSED:
            result.why = "not applied: " + run.errors.strip().splitlines()[-1]
        elif run.status != 0:
            result.why = "the run failed: " + run.errors.strip().splitlines()[-1]
        else:
            result.real = peaks_of(analyze(self.build, run.trace))
        if "refused" in answer:
            result.why = "; ".join(filter(None, ("refused: " + answer["refused"], result.why)))
        else:
            result.predicted = Peaks(answer["allocated"], answer["reserved"])
        return result


def peaks_of(report: dict) -> Peaks:
    device = max(report["devices"], key=lambda d: int(d["peak_allocated"]["bytes"]))
    return Peaks(int(device["peak_allocated"]["bytes"]), int(device["peak_reserved"]["bytes"]))


def line(result: Result) -> str:
    if not result.complete:
        return f"{result.case!s:50} {result.why}"
    predicted, real = result.predicted, result.real
    return (
        f"{result.case!s:50} allocated {predicted.allocated:>15,} / {real.allocated:>15,} "
        f"{result.error('allocated'):+7.3f} %   reserved {predicted.reserved:>15,} / {real.reserved:>15,} "
        f"{result.error('reserved'):+7.3f} %"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", nargs="*", help=", ".join(PROGRAMS))
    parser.add_argument("--with", dest="techniques", action="append", help="separated by semicolons")
    parser.add_argument("--pairs", action="store_true", help="the pairs, too")
    parser.add_argument("--keep", type=Path, help="folder of traces to use again")
    options = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        runner = Runner(default_build(), folder)
        wanted = options.techniques or [*SINGLE, *(PAIRS if options.pairs else ())]
        for name in options.program or PROGRAMS:
            for techniques in wanted:
                print(line(runner.measure(name, PROGRAMS[name], techniques)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
