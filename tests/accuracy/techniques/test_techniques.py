"""A small member of the comparison of `script/accuracy techniques`, and proof that it can fail."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator

import pytest
from recording import ROOT, default_build

from tests.accuracy.batch.runs import Peaks
from tests.accuracy.techniques.cases import SMALL
from tests.accuracy.techniques.run import Edge, Result, Runner

# Percent of allocated bytes. Small models leave small errors of a few tensors large.
MOST = {"checkpointing": 0.5, "bf16-autocast": 1.5}


@pytest.fixture(scope="session")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    if importlib.util.find_spec("transformers") is None:
        pytest.skip("transformers is not installed")
    try:
        runner = Runner(default_build(), tmp_path_factory.mktemp("techniques"))
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
    with runner:
        yield runner


@pytest.mark.parametrize("techniques", MOST)
def test_forecast_is_near_the_run(techniques: str, runner: Runner) -> None:
    result = runner.measure("small", SMALL, techniques)
    assert result.why == ""
    assert abs(result.error("allocated")) <= MOST[techniques]


def test_the_base_differs_from_the_run(runner: Runner) -> None:
    """What would pass if the technique were never applied would prove nothing."""
    base = runner.measure("small", SMALL, "checkpointing")
    unchanged = runner.run("small", SMALL, "")
    assert unchanged.trace.is_file()
    recorded = runner.replayed(unchanged.trace)
    assert abs(Result(base.case, recorded, base.real).error("allocated")) > 10 * MOST["checkpointing"]


def test_a_technique_that_nobody_can_apply_ends_the_program(runner: Runner) -> None:
    run = runner.run("small", SMALL, "tensor-parallel")
    assert run.status == 2
    assert "tensor-parallel cannot be applied" in run.printed


def test_every_row_is_applied_from_outside_or_says_why_not() -> None:
    rows = re.findall(r'\.key = "([^"]+)"', (ROOT / "analyzer/forecast/technique.def").read_text())
    module = ast.parse((ROOT / "preload/python/techniques/__init__.py").read_text())
    tables = {
        node.targets[0].id: [ast.literal_eval(key) for key in node.value.keys]  # type: ignore[attr-defined]
        for node in module.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)
    }
    assert len(rows) > 20
    assert sorted([*tables["ROWS"], *tables["BEYOND"]]) == sorted(rows)


def test_a_wrong_verdict_is_seen() -> None:
    assert Edge(-0.01, False, "fits").wrong
    assert Edge(0.01, True, "does not fit").wrong
    assert not any(Edge(0.0, fits, "near").wrong for fits in (True, False))
    assert not Edge(0.01, True, "fits").wrong


def test_error_is_relative_to_the_run() -> None:
    result = Result(None, Peaks(110, 90), Peaks(100, 100))  # type: ignore[arg-type]
    assert result.error("allocated") == pytest.approx(10)
    assert result.error("reserved") == pytest.approx(-10)
