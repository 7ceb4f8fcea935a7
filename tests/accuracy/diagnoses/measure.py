"""script/accuracy diagnoses: every script of tests/training/diagnoses, and what is said of it."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

from diagnoses.cases import CASES
from diagnoses.verdicts import run_case, sums_that_are_wrong
from recording import default_build

from script.figures import Figure, say


def measure() -> list[Figure]:
    build = default_build()
    matrix: Counter[tuple[str, str]] = Counter()  # reproduced, said with high confidence (or - for nothing)
    found = wrong_high = high = 0
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            verdicts = run_case(build, case, Path(folder))
        found += case.expected in verdicts.found
        high += case.expected in verdicts.high
        wrong = sorted(verdicts.high - {case.expected})
        wrong_high += len(wrong)
        for name in verdicts.high or {"-"}:
            matrix[case.expected, name] += 1
        said = ", ".join(f"{name} {confidence}" for name, confidence in verdicts.found.items()) or "nothing"
        say(f"  {case} ({case.expected}): {said}{'  WRONG: ' + ', '.join(wrong) if wrong else ''}")
        for sentence in sums_that_are_wrong(verdicts.report):
            raise AssertionError(f"{case}: {sentence}")
    print_matrix(matrix)
    runs = len(CASES)
    basis = f"{runs} scripts that reproduce public reports, on the simulated device"
    return [
        Figure("diagnoses: found", found, f"of {runs}", "higher", basis, target=0.9 * runs),
        Figure("diagnoses: found with high confidence", high, f"of {runs}", "higher", basis),
        Figure("diagnoses: wrong with high confidence", wrong_high, "verdicts", "lower", basis, target=0),
    ]


def print_matrix(matrix: Counter[tuple[str, str]]) -> None:
    """Rows: what the report is. Columns: what is said with high confidence; - is nothing."""
    columns = sorted({said for _, said in matrix})
    say("  report  " + "".join(column.rjust(5) for column in columns))
    for row in sorted({expected for expected, _ in matrix}):
        cells = (str(matrix[row, column] or ".").rjust(5) for column in columns)
        say(f"  {row:<8}" + "".join(cells))
