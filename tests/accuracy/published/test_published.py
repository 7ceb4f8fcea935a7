"""The published cases can be read, and what runs them knows every model and card."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.accuracy.published.architectures import CLASSES, VISION_BUILDERS
from tests.accuracy.published.cases import COLUMNS, OWN, BadCase, read
from tests.accuracy.published.measure import CARDS, KINDS, Scored, figures_of_kind


def test_every_case_that_is_run_has_its_model_and_card() -> None:
    cases = [case for case in read(OWN) if case.kind in KINDS]
    assert {case.kind for case in cases} == set(KINDS)
    for case in cases:
        assert case.gpu in CARDS, case
        if "build" in case.shape:
            assert case.model in VISION_BUILDERS, case
        else:
            assert case.shape["cls"].split(" ")[0] in CLASSES, case
        assert min(case.batch, case.length) > 0, case
        assert case.torch, case


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("id,gpu\nmine,rtx4090\n")
    with pytest.raises(BadCase, match=r"own\.csv:1: no column source_url"):
        read(path)


def test_a_bad_cell_is_named_by_its_line(tmp_path: Path) -> None:
    good = OWN.read_text().splitlines()[:2]
    path = tmp_path / "own.csv"
    path.write_text("\n".join([*good, re.sub(r"\b3468689408\b", "much", good[1])]) + "\n")
    with pytest.raises(BadCase, match=r"own\.csv:3: xmem-.*much"):
        read(path)
    assert len(COLUMNS) == 17


def test_figures_count_what_could_not_be_scored() -> None:
    cases = [case for case in read(OWN) if case.kind == "transformer-train-nvml"][:3]
    scores = [
        Scored(cases[0], cases[0].truth + cases[0].truth // 100, False),
        Scored(cases[1], cases[1].truth, False),
        Scored(cases[2], 0, False, "no output"),
    ]
    median, largest, peer = figures_of_kind("transformer-train-nvml", scores)
    assert median.value == pytest.approx(0.5, rel=1e-3)
    assert largest.value == pytest.approx(1.0, rel=1e-3)
    assert "2 of 3 cases scored" in median.basis
    assert peer.value > 0
