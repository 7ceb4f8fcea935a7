"""`script/accuracy estimate`: estimates against dry runs of the same, and against published measurements."""

from __future__ import annotations

import json
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path

from recording import Build, default_build, vramtrace

from script.figures import Figure, say
from tests.accuracy.estimate.cases import CASES
from tests.accuracy.estimate.comparison import Comparison, compare
from tests.accuracy.estimate.models import MODELS
from tests.accuracy.estimate.published import PUBLISHED, Published

STATES_EXACT_PERCENT = 0.1  # positions, frequencies and the like are not states
MEDIAN_TARGET_PERCENT = 5
PUBLISHED_TARGET_PERCENT = 10


@dataclass(frozen=True)
class Scored:
    row: Published
    estimated: int

    @property
    def error(self) -> float:
        return 100 * (self.estimated - self.row.measured) / self.row.measured


def score(build: Build, row: Published) -> Scored:
    model = next(model for model in MODELS if model.name == row.model)
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.json"
        config.write_text(json.dumps(model.as_json()))
        done = vramtrace(build, "estimate", config, *row.options.split(), "--format", "json")
    if done.returncode != 0:
        raise RuntimeError(f"{row.name}: status {done.returncode}\n{done.stderr[-2000:]}")
    report = json.loads(done.stdout)
    key = "allocated_bytes" if row.counter == "allocated" else "device_used_without_context_bytes"
    return Scored(row, report[key]["expected"])


def figures_of(results: list[Comparison]) -> list[Figure]:
    count = len(results)
    peaks = [abs(result.peak_error) for result in results]
    exact = sum(abs(result.states_error) <= STATES_EXACT_PERCENT for result in results)
    covered = sum(result.used_low <= result.reserved <= result.used_high for result in results)
    basis = f"{count} configurations, requested bytes of PyTorch in a dry run"
    return [
        Figure(
            "estimate: parameters equal",
            sum(r.parameters_agree for r in results),
            f"of {count}",
            "higher",
            basis,
            count,
        ),
        Figure("estimate: states exact", exact, f"of {count}", "higher", basis, count),
        Figure(
            "estimate: peak, median error",
            statistics.median(peaks),
            "%",
            "lower",
            basis,
            MEDIAN_TARGET_PERCENT,
        ),
        Figure("estimate: peak, largest error", max(peaks), "%", "lower", basis),
        Figure(
            "estimate: reserved within the band", covered, f"of {count}", "higher", "what PyTorch reserved"
        ),
    ]


def published_figures(scores: list[Scored]) -> list[Figure]:
    whole = [abs(scored.error) for scored in scores if scored.row.whole]
    others = [abs(scored.error) for scored in scores if not scored.row.whole]
    good = sum(error <= PUBLISHED_TARGET_PERCENT for error in whole)
    return [
        Figure(
            "estimate: published, within 10 %",
            good,
            f"of {len(whole)}",
            "higher",
            "settings stated whole",
            len(whole),
        ),
        Figure(
            "estimate: published, median error",
            statistics.median(whole),
            "%",
            "lower",
            "settings stated whole",
        ),
        Figure(
            "estimate: published in part, median error",
            statistics.median(others),
            "%",
            "lower",
            "reasons above",
        ),
    ]


def measure() -> list[Figure]:
    build = default_build()
    results = []
    for case in CASES:
        result = compare(build, case)
        say(
            f"  {case}: peak {result.peak_error:+.2f} % of {result.peak_counted / 1e9:.2f} GB, "
            f"states {result.states_error:+.3f} %, reserved {result.reserved / 1e9:.2f} GB in "
            f"{result.used_low / 1e9:.2f} to {result.used_high / 1e9:.2f}"
        )
        results.append(result)
    scores = [score(build, row) for row in PUBLISHED]
    for scored in scores:
        row = scored.row
        say(f"  {row.name}: {scored.error:+.1f} % of {row.measured / 1e9:.2f} GB {row.counter}. {row.why}")
    return [*figures_of(results), *published_figures(scores)]
