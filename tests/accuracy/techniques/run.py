"""Forecasts of techniques against runs with them applied for real.

python -m tests.accuracy.techniques.run [PROGRAM...] [--with TECHNIQUES]... [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from recording import Build, default_build

from tests.accuracy.batch.runs import Dry, Peaks, Runs

from .cases import PAIRS, PROGRAMS, SINGLE, Case

REFUSED = 2  # exit status of a program that a technique cannot be applied to


@dataclass(frozen=True)
class Edge:
    """A card whose size is near what the run needs at least."""

    share: float  # of that need, which the card has more of
    fits: bool
    verdict: str  # "fits", "near", "does not fit"

    @property
    def wrong(self) -> bool:
        return self.verdict == ("does not fit" if self.fits else "fits")


@dataclass
class Result:
    case: Case
    predicted: Peaks | None = None
    real: Peaks | None = None
    why: str = ""  # there are no peaks
    bands: dict[str, tuple[float, float]] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)

    def error(self, field: str) -> float:
        """Of the forecast, in percent of what the run took."""
        assert self.predicted is not None
        assert self.real is not None
        return 100 * (getattr(self.predicted, field) / getattr(self.real, field) - 1)

    def share(self, name: str) -> float:
        """How far the truth lies from the forecast, as a share of the forecast."""
        assert self.predicted is not None
        assert self.real is not None
        return getattr(self.real, name) / getattr(self.predicted, name) - 1

    def held(self, name: str) -> bool:
        low, high = self.bands[name]
        return low - 1e-9 <= self.share(name) <= high + 1e-9

    @property
    def complete(self) -> bool:
        return self.predicted is not None and self.real is not None


class Runner:
    """Dry runs, kept in a folder so that each is run once, and forecasts from them."""

    def __init__(self, build: Build, folder: Path) -> None:
        found = sorted(build.folder.rglob("technique_predict"))
        if not found:
            raise FileNotFoundError(f"technique_predict: not in {build.folder}; build it")
        self.predictor = found[0]
        self.runs = Runs(build, folder)

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *arguments: object) -> None:
        self.runs.__exit__(*arguments)

    def run(self, name: str, program: tuple[Path, str], techniques: str) -> Dry:
        script, options = program
        folder = f"{name} {techniques}".strip().replace(";", "+").replace(":", "-")
        return self.runs.run(folder, script, tuple(with_batch(options, techniques)), techniques)

    def predict(self, trace: Path, *techniques: str) -> dict:
        command = [self.predictor, trace, *techniques]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        if done.returncode != 0:
            raise RuntimeError(f"technique_predict {techniques}: {done.stderr}")
        return json.loads(done.stdout)

    def replayed(self, trace: Path) -> Peaks:
        """Of the recorded run as it is."""
        answer = self.predict(trace)
        return Peaks(answer["allocated"], answer["reserved"])

    def measure(self, name: str, program: tuple[Path, str], techniques: str) -> Result:
        result = Result(Case(name, techniques))
        base = self.run(name, program, "")
        if base.peaks is None:
            raise RuntimeError(f"{name}: status {base.status}\n{base.printed[-2000:]}")
        run = self.run(name, program, techniques)
        applied = ("--edge", str(run.trace)) if run.peaks is not None else ()
        answer = self.predict(base.trace, *techniques.split(";"), *applied)
        if run.status == REFUSED:
            result.why = "not applied: " + last_line(run)
        elif run.peaks is None:
            result.why = f"the run failed with status {run.status}: " + last_line(run)
        result.real = run.peaks
        if "refused" in answer:
            result.why = "; ".join(filter(None, ("refused: " + answer["refused"], result.why)))
        else:
            result.predicted = Peaks(answer["allocated"], answer["reserved"])
            result.bands = {name: tuple(answer[f"{name}_band"]) for name in ("allocated", "reserved")}
            result.edges = [Edge(**edge) for edge in answer.get("edges", [])]
        return result


def last_line(run: Dry) -> str:
    lines = run.printed.strip().splitlines()
    return lines[-1] if lines else "it said nothing"


def with_batch(options: str, techniques: str) -> list[str]:
    """Micro-batches are the program's own batches, so many to a step of the optimizer."""
    words = options.split()
    found = re.search(r"gradient-accumulation(?::steps=(\d+))?", techniques)
    if found is not None and "--batch" in words:
        place = words.index("--batch") + 1
        steps = int(found[1] or 2)
        words[place] = str(int(words[place]) // steps)
        place = words.index("--steps") + 1
        words[place] = str(int(words[place]) * steps)
    return words


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
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        wanted = options.techniques or [*SINGLE, *(PAIRS if options.pairs else ())]
        with Runner(default_build(), folder) as runner:
            for name in options.program or PROGRAMS:
                for techniques in wanted:
                    print(line(runner.measure(name, PROGRAMS[name], techniques)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
