"""script/accuracy techniques: every technique that can be applied from outside, alone and in pairs."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from recording import default_build

from script.figures import Figure, say

from .cases import PAIRS, PROGRAMS, SINGLE
from .run import Result, Runner, line

# Percent of allocated bytes.
TARGET_MEDIAN = 0.5
TARGET_WORST = 3.0


def figures_of(name: str, results: list[Result]) -> list[Figure]:
    done = [result for result in results if result.complete]
    refused = len(results) - len(done)
    basis = (
        f"{len(done)} forecasts from one dry run against another with it applied; {refused} not comparable"
    )
    figures = []
    for field, median, worst in (
        ("allocated", TARGET_MEDIAN, TARGET_WORST),
        ("reserved", None, None),
    ):
        errors = [abs(result.error(field)) for result in done]
        if not errors:
            continue
        figures += [
            Figure(f"{name} {field}: median", statistics.median(errors), "%", "lower", basis, median),
            Figure(f"{name} {field}: worst", max(errors), "%", "lower", basis, worst),
        ]
    return figures


def measure() -> list[Figure]:
    build = default_build()
    figures = []
    everything: list[Result] = []
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(build, Path(folder))
        for techniques in (*SINGLE, *PAIRS):
            results = []
            for name, program in PROGRAMS.items():
                results.append(runner.measure(name, program, techniques))
                say("  " + line(results[-1]))
            figures += figures_of(f"techniques {techniques}", results)
            everything += results
    return [*figures, *figures_of("techniques", everything)]
