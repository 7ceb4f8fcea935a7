"""A small member of `script/accuracy attribution`, and proof that it can fail."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from matrix import MODELS
from recording import default_build

from tests.accuracy.attribution.cases import CASES, TRAINING, Case
from tests.accuracy.attribution.measure import LABELS, PLACES, TARGET, Scores, figures_of, measure_case
from tests.accuracy.attribution.score import Told, peak_of, score
from tests.accuracy.attribution.truth import Lived, Truth, classes_of

SMALL = Case("gpt2-small", TRAINING / "gpt2.py", MODELS["gpt2"][1])


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> Scores:
    try:
        build = default_build()
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
    return measure_case(build, SMALL, tmp_path_factory.mktemp("attribution"))


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("place", PLACES)
def test_told_is_true(scores: Scores, labels: str, place: str) -> None:
    found = scores[(labels, place)]
    assert found.all > 0
    assert 100 * found.share_right >= TARGET[labels], found.confused.most_common(5)
    assert 100 * found.unknown / found.all <= 0.1
    if labels == "labels":
        assert found.names_all > 0
        assert found.names_right == found.names_all


def lived(memory_class: str, begin: int, end: int, size: int = 512) -> Lived:
    return Lived(size, size, begin, end, Truth((memory_class,), ("w",)))


def told(memory_class: str, size: int = 512) -> Told:
    return Told(size, size, memory_class, ("w",), "rule")


def test_a_wrong_class_is_seen() -> None:
    lives = [lived("weight", 1, 9, 1024), lived("activation", 2, 4), lived("temporary", 3, 4)]
    right = [told("weight", 1024), told("activation"), told("temporary")]
    at_peak, over_time = score(right, lives)
    assert at_peak.share_right == over_time.share_right == 1
    wrong = [dataclasses.replace(right[0], memory_class="buffer"), *right[1:]]
    at_peak, over_time = score(wrong, lives)
    assert at_peak.share_right == pytest.approx(0.5)
    assert over_time.share_right == pytest.approx(1 - 1024 * 8 / (1024 * 8 + 512 * 2 + 512))
    assert at_peak.precision("buffer") == 0
    assert at_peak.recall("weight") == 0
    assert at_peak.recall("activation") == 1
    figures = {
        figure.name: figure.value
        for figure in figures_of({"a": {(name, place): at_peak for name in LABELS for place in PLACES}})
    }
    assert figures["attribution, labels, at the peak: right"] == pytest.approx(50)


def test_runs_that_differ_are_refused() -> None:
    with pytest.raises(AssertionError, match="first at block 0"):
        score([told("weight", 1024)], [lived("weight", 1, 9, 512)])


def test_the_first_highest_event_is_the_peak() -> None:
    assert peak_of([lived("weight", 1, 9), lived("activation", 2, 3), lived("activation", 4, 5)]) == 2


def test_who_holds_a_block_says_what_it_is() -> None:
    assert classes_of([["weight", "w"], ["activation", ""]], 512, short=False) == ("weight",)
    assert classes_of([["activation", ""], ["output", "returned"]], 512, short=True) == (
        "activation",
        "output",
    )
    assert classes_of([], 8_519_680, short=True) == ("workspace",)
    assert classes_of([], 512, short=True) == ("temporary", "workspace")
    assert classes_of([], 512, short=False) == ("unnamed",)
    assert classes_of([["activation", ""]], 512, short=True) == ("activation",)
    assert classes_of([["activation", ""]], 512, short=False) == ("unnamed",)


def test_every_script_is_there() -> None:
    assert len(CASES) >= 14
    for case in CASES:
        assert Path(case.script).is_file(), case
