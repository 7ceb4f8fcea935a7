"""The comparison with a real GPU, with a second dry run in the real card's place."""

import pytest
from recording import default_build

from tests.accuracy import device


def test_equal_runs_have_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    build = default_build()
    card = device.in_catalogue(build, "NVIDIA GeForce RTX 4090", 25_000_000_000)
    assert card is not None
    assert card.gpu == "rtx4090"
    monkeypatch.setattr(device, "CASES", device.CASES[:1])
    same = ["dry-run", "--gpu", "rtx4090", "--total", str(card.total_bytes), "--steps", "all"]
    figures = device.compare_on(build, card, same)
    assert [figure.value for figure in figures] == [0, 0, 0]
    assert "25," not in figures[0].basis  # peaks, not the card's total


def test_names_that_share_a_beginning_are_told_apart() -> None:
    build = default_build()
    larger = device.in_catalogue(build, "NVIDIA A100-SXM4-80GB", 85_000_000_000)
    assert larger is not None
    assert larger.gpu == "a100-80-sxm"
    assert device.in_catalogue(build, "NVIDIA A100", 1) is None


def test_without_a_gpu_it_is_skipped_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert device.measure(lambda: None) == []
    assert "skipped" in capsys.readouterr().err
    assert device.measure(lambda: ("Voodoo 2", 12 << 20)) == []
    assert "not in the catalogue" in capsys.readouterr().err
