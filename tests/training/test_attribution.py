"""Every block at the peak, and all counts, against PyTorch's own objects."""

from pathlib import Path

import pytest
from comparison import compare, compare_identity
from matrix import MODELS, OUT_OF_MEMORY, Case, cases
from recording import FOLDER, Build, analyze, run_python, run_with_referee
from report import read_report

GPU = "rtx4090"


def check(report_json: dict, referee: dict) -> None:
    report = read_report(report_json)
    comparison = compare(report, referee)
    problems = [*comparison.problems, *compare_identity(report)]
    assert not problems, "\n".join(problems[:20])
    assert comparison.bytes_named > 0


@pytest.mark.parametrize("case", cases(MODELS), ids=str)
def test_small_model(build: Build, tmp_path: Path, case: Case) -> None:
    run, referee = run_with_referee(build, case.script, list(case.arguments), tmp_path, GPU)
    assert run.status == 0, run.errors
    report = analyze(build, run.trace)
    check(report, referee)
    assert report["steps"]["completed"] == 3
    assert report["devices"][0].get("out_of_memory") is None


def test_full_size_gpt2(build: Build, tmp_path: Path) -> None:
    run, referee = run_with_referee(build, "gpt2.py", [], tmp_path, GPU)
    assert run.status == 0, run.errors
    check(analyze(build, run.trace), referee)


def test_without_the_referee_the_peak_is_the_same(build: Build, tmp_path: Path) -> None:
    """The referee looks on: a run without it, with nothing but LD_PRELOAD, has the same blocks."""
    _, script, *arguments = ["", "gpt2.py", *MODELS["gpt2"][1].split()]
    watched, alone = tmp_path / "watched", tmp_path / "alone"
    watched.mkdir()
    alone.mkdir()
    _, referee = run_with_referee(build, script, arguments, watched, GPU)
    run = run_python(build, [FOLDER / script, *arguments], alone / "run.vtrace", GPU)
    assert run.status == 0, run.errors
    report = read_report(analyze(build, run.trace))
    assert report.allocated_peak == referee["allocated_peak"]
    assert report.reserved_peak == referee["reserved_peak"]
    assert report.block_allocations == referee["allocations"]
    sizes = sorted((block.requested, block.size) for block in report.live)
    assert sizes == sorted((block["requested"], block["bytes"]) for block in referee["blocks_at_peak"])


def test_out_of_memory(build: Build, tmp_path: Path) -> None:
    run, referee = run_with_referee(build, OUT_OF_MEMORY.script, [], tmp_path, GPU)
    assert run.status == 1
    assert "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate" in run.errors
    assert referee["out_of_memory"] == 1
    report = analyze(build, run.trace)
    check(report, referee)
    verdict = report["devices"][0]["out_of_memory"]
    assert verdict["device_total"] == referee["total_memory"]
    assert verdict["requested"] > 0
    assert verdict["requested"] > verdict["device_free"]
    assert verdict["allocated"] <= referee["allocated_peak"]
