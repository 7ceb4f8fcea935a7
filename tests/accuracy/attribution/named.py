"""The training matrix at full size, every block at the peak compared with PyTorch's own objects."""

from __future__ import annotations

import tempfile
from pathlib import Path

from comparison import Comparison, compare, compare_identity
from matrix import FULL_MODELS, OUT_OF_MEMORY, Case, cases
from recording import Build, analyze, default_build, run_with_referee
from report import read_report

from script.figures import Figure, say

# The card of the matrix: large enough for every run, so that none of them ends early.
GPU = "h200"
SMALL_GPU = "rtx4090"


def run_case(build: Build, case: Case, gpu: str) -> tuple[Comparison, list[str]]:
    with tempfile.TemporaryDirectory() as folder:
        run, referee = run_with_referee(build, case.script, list(case.arguments), Path(folder), gpu)
        report = read_report(analyze(build, run.trace))
        comparison = compare(report, referee)
        return comparison, [*comparison.problems, *compare_identity(report)]


def measure() -> list[Figure]:
    build = default_build()
    figures = []
    exact = 0
    runs = [(case, GPU) for case in cases(FULL_MODELS)] + [(OUT_OF_MEMORY, SMALL_GPU)]
    for case, gpu in runs:
        comparison, problems = run_case(build, case, gpu)
        exact += not problems
        say(f"  {case}: {'exact' if not problems else f'{len(problems)} differences'}")
        for problem in problems[:5]:
            say(f"    {problem}")
        figures.append(
            Figure(
                f"attribution {case}: named bytes right",
                100 * comparison.bytes_right / max(1, comparison.bytes_named),
                "%",
                "higher",
                f"{comparison.bytes_named:,} B of weights, buffers, gradients, optimizer state on {gpu}",
                target=100,
            )
        )
    basis = "counts, peak, classes, names and identity equal to the byte"
    figures.append(
        Figure("attribution: runs exact", exact, f"of {len(runs)}", "higher", basis, target=len(runs))
    )
    return figures
