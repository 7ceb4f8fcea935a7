"""A small member of `script/accuracy batch`, and proof that it can fail."""

from __future__ import annotations

from pathlib import Path

import pytest
from matrix import MODELS
from recording import Build, default_build

from tests.accuracy.batch.cases import TRAINING, Case
from tests.accuracy.batch.measure import FIRST, ONE, TWO, Residual, figures_of, measure_case, quantiles
from tests.accuracy.batch.runs import Runs

SMALL = Case(
    "gpt2-small",
    TRAINING / "gpt2.py",
    tuple(MODELS["gpt2"][1].split()),
    (8, 16),
    (2, 4, 12, 32, 64),
)


@pytest.fixture(scope="module")
def residuals(tmp_path_factory: pytest.TempPathFactory) -> list[Residual]:
    try:
        build: Build = default_build()
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
    with Runs(build, tmp_path_factory.mktemp("batch")) as runs:
        return measure_case(build, runs, SMALL)


def worst(residuals: list[Residual], basis: str, counter: str) -> float:
    return max(each.error for each in residuals if (each.basis, each.counter) == (basis, counter))


# Reserved of a model as small as this moves by whole segments of 2 and 20 MiB.
@pytest.mark.parametrize(
    ("basis", "counter", "percent"),
    [(TWO, "allocated", 0.5), (TWO, "reserved", 0.5), (ONE, "allocated", 1.0), (ONE, "reserved", 3.0)],
)
def test_forecast_is_near_the_dry_run(
    residuals: list[Residual], basis: str, counter: str, percent: float
) -> None:
    assert worst(residuals, basis, counter) <= percent


def test_every_forecast_is_there(residuals: list[Residual]) -> None:
    assert len([each for each in residuals if each.basis == TWO]) == 2 * len(SMALL.targets)
    assert {each.batch for each in residuals if each.basis == FIRST} == {*SMALL.targets, *SMALL.recorded}


def test_a_wrong_forecast_is_seen() -> None:
    right = Residual("a", TWO, 4, "allocated", 0.0, (0.0, 0.0))
    wrong = Residual("b", TWO, 4, "allocated", 0.25, (-0.1, 0.1))
    assert right.held
    assert right.error == 0
    assert not wrong.held
    assert wrong.error == pytest.approx(20)
    others = [
        Residual(case, basis, 4, counter, 0.0, (0.0, 0.0))
        for case in ("a", "b")
        for basis in (TWO, ONE, FIRST)
        for counter in ("allocated", "reserved")
        if (case, basis, counter) not in {("a", TWO, "allocated"), ("b", TWO, "allocated")}
    ]
    figures = {figure.name: figure.value for figure in figures_of([right, wrong, *others])}
    assert figures["batch, two recordings, allocated: worst error"] == pytest.approx(20)
    assert figures["batch, two recordings, allocated: in the band"] == 0
    assert figures["batch, two recordings, reserved: in the band"] == 100


def test_bands_leave_their_tails_out() -> None:
    assert quantiles(range(-50, 51)) == (-48, 48)
    assert quantiles([3, 1]) == (1, 3)


def test_scripts_are_there() -> None:
    assert Path(SMALL.script).is_file()
