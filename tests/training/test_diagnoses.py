"""Every diagnosis has its scripts; the quick ones are told right, and nothing else with high confidence."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from diagnoses.cases import CASES, FOLDER, NOT_CHECKED, Case, rows
from diagnoses.verdicts import run_case, sums_that_are_wrong
from recording import Build

SUPPORT = {"cases.py", "verdicts.py"}


@pytest.mark.parametrize("row", rows())
def test_every_row_has_a_reproduction_and_a_near_miss(row: str) -> None:
    if row in NOT_CHECKED:
        assert not [case for case in CASES if case.expected == row]
        return
    assert [case for case in CASES if case.expected == row], f"{row}: no script reproduces a report of it"
    assert [case for case in CASES if row in case.near_miss], f"{row}: no near miss"


def test_every_script_has_a_case_and_a_report() -> None:
    scripts = {path.name for path in FOLDER.glob("*.py")} - SUPPORT
    assert scripts == {case.script for case in CASES}
    for case in CASES:
        text = ast.get_docstring(ast.parse((FOLDER / case.script).read_text()))
        assert text, case.script
        assert text.startswith(case.expected + "."), case.script
        assert "https://" in text, case.script
        assert case.expected not in case.near_miss
        assert {case.expected, *case.near_miss} <= set(rows())


@pytest.mark.parametrize("case", [case for case in CASES if case.quick], ids=str)
def test_a_report_is_diagnosed(build: Build, case: Case, tmp_path: Path) -> None:
    verdicts = run_case(build, case, tmp_path)
    assert case.expected in verdicts.found, verdicts.found
    assert case.expected in verdicts.shown
    assert len(verdicts.shown) <= 3
    assert verdicts.high <= {case.expected}
    assert sums_that_are_wrong(verdicts.report) == []
