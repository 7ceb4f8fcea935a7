"""Forecasts of the batch against dry runs at that batch."""

from __future__ import annotations

import dataclasses
import json
import os
import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from recording import Build, default_build

from script.figures import Figure, say

from .cases import Case, cases
from .runs import Dry, Forecast, Runs, folder_of_runs, forecast

COUNTERS = ("allocated", "reserved")
# From which recordings a forecast is made.
TWO, ONE, FIRST = "two recordings", "one recording", "one recording at batch 1"
# The targets of the product: median and worst error, percent.
TARGETS = {TWO: (0.05, 0.5), ONE: (0.2, 1.0), FIRST: (None, 5.0)}
# Of the cases whose residuals would make the bands; those of the others are held against them.
TAIL = 0.025


@dataclass(frozen=True)
class Residual:
    """How far the truth lies from one forecast, as a share of the forecast."""

    case: str
    basis: str
    batch: int
    counter: str
    share: float
    band: tuple[float, float]

    @property
    def error(self) -> float:
        """Of the forecast, in percent of the truth, without its sign."""
        return 100 * abs(1 / (1 + self.share) - 1)

    @property
    def held(self) -> bool:
        # Shares are rounded to whole bytes: a forecast that is right to the byte lies in a band of no width.
        return self.band[0] - 1e-9 <= self.share <= self.band[1] + 1e-9


def residuals_of(case: str, basis: str, forecasts: list[Forecast], truths: dict[int, Dry]) -> list[Residual]:
    found = []
    for predicted in forecasts:
        truth = truths[predicted.batch].peaks
        for counter in COUNTERS:
            share = getattr(truth, counter) / getattr(predicted.peaks, counter) - 1
            found.append(Residual(case, basis, predicted.batch, counter, share, predicted.bands[counter]))
    return found


def run_at(runs: Runs, case: Case, batch: int) -> Dry:
    dry = runs.run(f"{case.name}-{batch}", case.script, (*case.arguments, "--batch", str(batch)))
    if dry.peaks is None:
        raise RuntimeError(f"{case} with batch {batch} failed:\n{dry.printed[-2000:]}")
    return dry


def measure_case(build: Build, runs: Runs, case: Case) -> list[Residual]:
    batches = sorted({*case.recorded, *case.targets, *([1] if case.takes_one else [])})
    truths = {batch: run_at(runs, case, batch) for batch in batches}
    targets = list(case.targets)
    recorded = {batch: truths[batch] for batch in case.recorded}
    bases = {TWO: (recorded, targets), ONE: ({case.recorded[0]: truths[case.recorded[0]]}, targets)}
    if case.takes_one:
        bases[FIRST] = ({1: truths[1]}, [batch for batch in (*case.recorded, *targets) if batch != 1])
    found = []
    for basis, (recordings, wanted) in bases.items():
        found += residuals_of(case.name, basis, forecast(build, recordings, wanted), truths)
    return found


def quantiles(shares: Iterable[float]) -> tuple[float, float]:
    """Of the tails of a band; of few values, the outermost ones."""
    ordered = sorted(shares)
    outside = int(TAIL * len(ordered))
    return ordered[outside], ordered[-1 - outside]


def halves(names: list[str]) -> tuple[set[str], set[str]]:
    """The order of the cases alternates precision or checkpointing, then the optimizer or model: taking the
    first and the last of each four puts every kind into both halves."""
    fitting = {name for place, name in enumerate(names) if place % 4 in (0, 3)}
    return fitting, set(names) - fitting


def figures_of(residuals: list[Residual]) -> list[Figure]:
    names = list(dict.fromkeys(residual.case for residual in residuals))
    fitting, reporting = halves(names)
    figures = []
    for basis, (median, worst) in TARGETS.items():
        for counter in COUNTERS:
            chosen = [each for each in residuals if (each.basis, each.counter) == (basis, counter)]
            errors = [each.error for each in chosen]
            what = f"{len(chosen)} forecasts of {counter} of {len(names)} programs, truth by dry runs"
            name = f"batch, {basis}, {counter}"
            figures.append(
                Figure(f"{name}: median error", statistics.median(errors), "%", "lower", what, median)
            )
            figures.append(Figure(f"{name}: worst error", max(errors), "%", "lower", what, worst))
            others = [each for each in chosen if each.case in reporting] or chosen
            held = 100 * sum(each.held for each in others) / len(others)
            figures.append(
                Figure(
                    f"{name}: in the band",
                    held,
                    "%",
                    "higher",
                    f"{len(others)} forecasts of the programs whose residuals made no band",
                    95,
                )
            )
            low, high = quantiles(each.share for each in chosen if each.case in fitting)
            say(f"  {name}: the other half would make a band of {100 * low:+.4f} % to {100 * high:+.4f} %")
    return figures


def chosen_cases() -> list[Case]:
    """VRAMTRACE_BATCH_CASES: names of cases, separated by commas; all without it."""
    wanted = os.environ.get("VRAMTRACE_BATCH_CASES")
    return [case for case in cases() if wanted is None or case.name in wanted.split(",")]


def say_worst(case: Case, found: list[Residual]) -> None:
    for basis in TARGETS:
        mine = [each for each in found if each.basis == basis]
        if not mine:
            continue
        worst = max(mine, key=lambda each: each.error)
        exact = sum(each.share == 0 for each in mine)
        say(
            f"  {case}, {basis}: {exact} of {len(mine)} exact; worst {worst.error:.4f} % of "
            f"{worst.counter} at batch {worst.batch}"
        )


def measure() -> list[Figure]:
    build = default_build()
    residuals: list[Residual] = []
    with folder_of_runs("batch") as folder, Runs(build, folder) as runs:
        for case in chosen_cases():
            found = measure_case(build, runs, case)
            residuals += found
            say_worst(case, found)
            # Only recordings are read again.
            recorded = {f"{case.name}-{batch}" for batch in (1, *case.recorded)}
            for trace in folder.glob(f"{case.name}-*/run.vtrace"):
                if trace.parent.name not in recorded:
                    trace.unlink()
        (folder / "residuals.json").write_text(json.dumps([dataclasses.asdict(each) for each in residuals]))
    return figures_of(residuals)
