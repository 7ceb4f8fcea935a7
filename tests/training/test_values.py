"""Values on the simulated device: true where they can be known, invisible to memory, said where not."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest
from matrix import MODELS
from recording import FOLDER, Build, Run, analyze, run_python, vramtrace

GPU = "rtx4090"
VALUES = FOLDER / "values"


def run(build: Build, folder: Path, script: Path, *arguments: str, **environment: str) -> Run:
    folder.mkdir(exist_ok=True)
    done = run_python(build, [script, *arguments], folder / "run.vtrace", GPU, **environment)
    assert done.status == 0, done.errors[-3000:]
    return done


def test_small_tensors_are_true(build: Build, tmp_path: Path) -> None:
    done = run(build, tmp_path, VALUES / "truths.py", VRAMTRACE_SIM_REPORT=str(tmp_path / "report.json"))
    cases = re.findall(r"^def (?!main)(\w+)", (VALUES / "truths.py").read_text(), re.MULTILINE)
    assert done.output.split() == cases
    counts = json.loads((tmp_path / "report.json").read_text())["counts"]
    assert counts["shadow_computed"] > 500
    assert counts["shadow_nanoseconds"] / counts["shadow_computed"] < 2e6  # 0.1 ms where nothing else runs


def test_fills_are_true_without_the_interpreter(build: Build, tmp_path: Path) -> None:
    run(build, tmp_path, VALUES / "fills.py", VRAMTRACE_SIM_VALUES="off")


def block_events(build: Build, trace: Path) -> list[str]:
    """Every block event with its thread, address, sizes, operator and totals.

    Left out: its number and time; the ids of stacks, given in the order in which they are first seen; the
    counts of autograd, where the host's operations take numbers too. Frees that follow one another are
    sorted: autocast lets its copies go in the order of a hash table."""
    done = vramtrace(build, "dump", trace)
    assert done.returncode == 0, done.stderr
    lines = (line.split(maxsplit=2) for line in done.stdout.splitlines())
    numbered = [
        (int(words[0]), words[2])
        for words in lines
        if len(words) == 3 and re.search(r" block_(allocate|free) ", words[2])
    ]
    # By their number: the file has a chunk of one thread after one of another.
    events = (event for _, event in sorted(numbered))
    plain = (re.sub(r" (stack|autograd\.sequence_number)=\d+", "", event) for event in events)
    ordered: list[str] = []
    for are_frees, events_of_one_kind in itertools.groupby(plain, lambda event: " block_free " in event):
        group = list(events_of_one_kind)
        ordered += sorted(group) if are_frees else group
    return ordered


@pytest.mark.parametrize("model", ["mlp", "gpt2", "resnet50"])
def test_the_shadow_is_invisible_to_memory(build: Build, tmp_path: Path, model: str) -> None:
    script, options = MODELS[model]
    arguments = (*options.split(), "--precision", "bf16")
    told = []
    for name in ("on", "off"):
        done = run(build, tmp_path / name, FOLDER / script, *arguments, VRAMTRACE_SIM_VALUES=name)
        report = analyze(build, done.trace)
        (device,) = report["devices"]
        for allocation in device["at_peak"]["allocations"]:
            allocation.pop("sequence")  # counts input tensors, which are met at a moment of the interpreter's
        told.append(
            {
                "events": block_events(build, done.trace),
                "allocated": device["peak_allocated"]["bytes"],
                "phase": device["peak_allocated"]["moment"]["phase"],
                "reserved": device["peak_reserved"]["bytes"],
                "at the peak": device["at_peak"]["allocations"],
                "steps": report["steps"]["completed"],
            }
        )
    assert len(told[0]["events"]) > 100
    for what, value in told[0].items():
        assert value == told[1][what], what


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_the_shadow_is_invisible_to_compilation(build: Build, tmp_path: Path, backend: str) -> None:
    told = [
        run(build, tmp_path / name, VALUES / "compiled.py", backend, VRAMTRACE_SIM_VALUES=name).output
        for name in ("on", "off")
    ]
    assert json.loads(told[0])["graphs"] >= 1
    assert told[0] == told[1]


def line_of(text: str) -> str:
    """Where values/unknown.py has it, as the report names it."""
    lines = (VALUES / "unknown.py").read_text().splitlines()
    (number,) = (i for i, line in enumerate(lines, 1) if text in line)
    return f"values/unknown.py:{number}"


def test_what_nobody_knows_is_said(build: Build, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    done = run(build, tmp_path, VALUES / "unknown.py", VRAMTRACE_SIM_REPORT=str(report))
    assert done.output.strip() == "epochs 8 kept 1048576"  # half of the mask; the loss falls to the end
    invented = json.loads(report.read_text())["invented_values"]
    shapes = [row for row in invented if row["effect"] == "shape"]
    assert [row["where"] for row in shapes] == [line_of("kept[kept > 0]")]
    assert "1,048,576 of 2,097,152" in shapes[0]["what"]
    assert {row["where"] for row in invented if row["effect"] == "value"} == {
        line_of("loss.item() > best"),
        line_of("best, epochs = loss"),
    }


def test_counts_can_be_chosen(build: Build, tmp_path: Path) -> None:
    done = run(build, tmp_path, VALUES / "unknown.py", VRAMTRACE_SIM_COUNTS="largest")
    assert done.output.strip() == "epochs 8 kept 2097152"
