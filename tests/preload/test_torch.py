"""The recorder in front of real PyTorch on the simulated device; the scripts' own data_ptr()s are the
referee."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from conftest import FOLDER, Build, Ended, Trace

INTERNALS = ("python_frames", "native_frames", "requested_sizes", "autograd_node", "labels")
WRAPPER = "_orig_mod."


def run(build: Build, folder: Path, script: str, *arguments: str, **options: str) -> Ended:
    import sys

    return build.run(folder, [sys.executable, FOLDER / "scripts" / script, *arguments], **options)


def labelled(trace: Trace) -> set[tuple[Any, ...]]:
    return {
        (p.fields["kind"].removeprefix("KIND_"), p.get("name"), p.texts.get("state_key", ""), p.address,
         int(p.fields["bytes"]))
        for p in trace.of("label")
    }  # fmt: skip


def known(folder: Path, when: str = "") -> set[tuple[Any, ...]]:
    rows = json.loads((folder / "known.json").read_text())["known"]
    return {(k, n.replace(WRAPPER, ""), key, a, b) for w, k, n, key, a, b in rows if w.startswith(when)}


def live_blocks_match(trace: Trace) -> None:
    """Every event's block is consistent: allocated once, freed with the size it had, requests fit."""
    live: dict[int, int] = {}
    for packet in trace.packets:
        if packet.kind == "block_allocate":
            assert packet.address not in live
            live[packet.address] = packet.get("bytes")
            assert packet.get("requested") <= packet.get("bytes")
        elif packet.kind == "block_free":
            size = live.pop(packet.address)
            assert packet.get("bytes") in (0, size)


@pytest.mark.parametrize("variant", ["plain", "deepcopy", "compile"])
def test_every_byte_has_its_name(build: Build, tmp_path: Path, variant: str) -> None:
    ended = run(build, tmp_path, "labelled.py", "known.json", variant)
    assert ended.status == 0, ended.errors
    assert "vramtrace" not in ended.errors
    trace = ended.trace()
    assert known(tmp_path) == labelled(trace)

    said = json.loads((tmp_path / "known.json").read_text())
    assert len(trace.of("block_allocate")) == said["allocations"]
    assert (
        len([p for p in trace.of("driver_allocate") if p.get("function") == "cudaMalloc"]) == said["segments"]
    )
    assert all(p.get("requested") > 0 for p in trace.of("block_allocate"))
    live_blocks_match(trace)

    features = trace.features()
    assert {name: features[name][0] for name in INTERNALS} == dict.fromkeys(INTERNALS, True), features
    # Two optimizers a step, five steps, begin and end.
    steps = Counter((p.get("number"), p.get("edge", "EDGE_OPTIMIZER_BEGIN")) for p in trace.of("step"))
    assert steps == {(n, f"EDGE_OPTIMIZER_{edge}"): 2 for n in range(5) for edge in ("BEGIN", "END")}
    inputs = [(p.get("step"), p.get("name"), p.fields["shape"]) for p in trace.of("input_tensor")]
    assert inputs == [row for n in range(5) for row in ((n, "tokens", ["32"]), (n, "scale", ["1"]))]
    operators = {p.texts.get("operator_name", "") for p in trace.of("block_allocate")}
    assert any("AddmmBackward0" in name for name in operators)
    assert "" in operators
    module_stack(trace)


def module_stack(trace: Trace) -> None:
    """A forward allocation's stack names its modules, outermost Model, by objects that have Module
    packets."""
    paths = {p.get("object"): (p.texts.get("path", ""), p.get("class_name")) for p in trace.of("module")}
    chains = set()
    for packet in trace.of("block_allocate"):
        assert not any(frame.file.startswith("<vramtrace>") for frame in packet.stack)
        chain = [paths[frame.module][0] for frame in packet.stack if frame.module]
        chains.add(tuple(reversed(chain)))
    assert ("", "blocks.1", "blocks.1.up") in chains
    assert paths[next(k for k, v in paths.items() if v[0] == "" and v[1] == "Model")] == ("", "Model")


@pytest.mark.parametrize("where", ["load", "forward", "backward", "step"])
def test_labels_are_there_when_memory_runs_out(build: Build, tmp_path: Path, where: str) -> None:
    ended = run(build, tmp_path, "out_of_memory.py", "known.json", where)
    assert ended.status == 1
    assert "OutOfMemoryError: CUDA out of memory" in ended.errors
    assert "vramtrace:" not in ended.errors  # frames of ours in the traceback are no message of ours
    trace = ended.trace()
    refused = trace.of("out_of_memory")
    assert len(refused) == 1
    assert refused[0].get("requested") >= 1 << 30
    assert any(frame.name == "<module>" for frame in refused[0].stack) or where == "backward"
    assert any(p.get("reason") == "REASON_OUT_OF_MEMORY" for p in trace.of("memory_query"))
    expected = known(tmp_path)
    assert expected
    assert expected <= labelled(trace)
    kinds = {row[0] for row in expected}
    assert (
        kinds
        == {
            "load": {"PARAMETER"},
            "forward": {"PARAMETER"},
            "backward": {"PARAMETER", "GRADIENT"},
            "step": {"PARAMETER", "GRADIENT", "OPTIMIZER_STATE"},
        }[where]
    )
    if where != "load":
        assert trace.of("input_tensor")


def test_a_step_inside_a_compiled_function(build: Build, tmp_path: Path) -> None:
    """It leaves no mark, because a mark would change the graph; names are found at an out of memory."""
    plain = tmp_path / "plain"
    plain.mkdir()
    unrecorded = run(build, plain, "compiled_step.py", "known.json", preload=build.simulated(recorded=False))
    assert unrecorded.status == 0, unrecorded.errors
    recorded = run(build, tmp_path, "compiled_step.py", "known.json")
    assert recorded.status == 0, recorded.errors
    assert "vramtrace" not in recorded.errors
    graphs = [json.loads((f / "known.json").read_text())["graphs"] for f in (plain, tmp_path)]
    assert graphs[0] == graphs[1]
    trace = recorded.trace()
    assert trace.of("step") == []
    assert {row[0] for row in known(tmp_path)} == {"PARAMETER", "OPTIMIZER_STATE"}
    assert known(tmp_path) <= labelled(trace)


def test_nothing_depends_on_being_recorded(build: Build, tmp_path: Path) -> None:
    recorded = run(build, tmp_path, "neutrality.py")
    plain = run(build, tmp_path, "neutrality.py", preload=build.simulated(recorded=False))
    assert recorded.status == plain.status == 0, recorded.errors + plain.errors
    first, second = json.loads(recorded.output), json.loads(plain.output)
    assert first == second
    assert first["cuda_initialized_by_import"] is False
    assert first["freed_without_collection"] == 0
    assert all(first["gone_without_collection"])


def test_expandable_segments_are_exact(build: Build, tmp_path: Path) -> None:
    ended = run(
        build, tmp_path, "labelled.py", "known.json", PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True"
    )
    assert ended.status == 0, ended.errors
    trace = ended.trace()
    said = json.loads((tmp_path / "known.json").read_text())
    assert len(trace.of("block_allocate")) == said["allocations"]
    assert known(tmp_path) == labelled(trace)
    created = [p for p in trace.of("driver_allocate") if p.get("function") == "cuMemCreate"]
    assert all(p.fields["kind"] == "MEMORY_KIND_PHYSICAL" for p in created)
    mapped = peak = 0
    for packet in trace.packets:
        if packet.kind in ("memory_map", "memory_unmap"):
            mapped += packet.get("bytes") * (1 if packet.kind == "memory_map" else -1)
            peak = max(peak, mapped)
    assert peak == said["peak_reserved"]
    assert sum(p.get("bytes") for p in created) >= said["peak_reserved"]


@pytest.mark.parametrize("variable", ["VRAMTRACE_OFF", "VRAMTRACE_BREAK"])
def test_every_internal_can_be_off(build: Build, tmp_path: Path, variable: str) -> None:
    """All rows at once, by choice and by a check that fails: the program and the rest of the trace are the
    same."""
    ended = run(build, tmp_path, "labelled.py", "known.json", **{variable: ",".join(INTERNALS)})
    assert ended.status == 0, ended.errors
    trace = ended.trace()
    said = json.loads((tmp_path / "known.json").read_text())
    assert len(trace.of("block_allocate")) == said["allocations"]
    live_blocks_match(trace)
    features = trace.features()
    assert {name: features[name][0] for name in INTERNALS} == dict.fromkeys(INTERNALS, False), features
    assert all(reason for _, reason in features.values())
    assert not any(frame.file or frame.native for p in trace.of("block_allocate") for frame in p.stack)
    requested = [p.get("requested") for p in trace.of("block_allocate")]
    assert not any(requested)
    assert not trace.of("label")
    assert not any("operator_name" in p.texts for p in trace.packets)
    assert len(trace.of("step")) == 20


@pytest.mark.parametrize(
    ("behaviour", "seconds"), [((), 60), (("swallow",), 60), (("hang",), 60), (("save", "evaluate"), 60)]
)
def test_a_dry_run_ends_by_itself(
    build: Build, tmp_path: Path, behaviour: tuple[str, ...], seconds: int
) -> None:
    ended = run(
        build,
        tmp_path,
        "stopping.py",
        *behaviour,
        VRAMTRACE_DRY_RUN_STEPS="auto",
        # How long the program may take to end; only those that do not end should meet it.
        VRAMTRACE_DRY_RUN_GRACE="3" if {"swallow", "hang"} & set(behaviour) else "60",
    )
    assert ended.status == 0, ended.errors
    said = [line for line in ended.errors.splitlines() if line.startswith("vramtrace:")]
    assert len(said) == 1
    assert "dry run ended after" in said[0]
    assert ("not seen: evaluation, saving" in said[0]) is ("save" not in behaviour)
    steps = int(said[0].split("after ")[1].split(" ")[0])
    assert 6 <= steps <= 8  # the peak rises in the first three or four
    assert "told SystemExit" in ended.output
    assert ("cleaned up" in ended.output) is (behaviour == () or "save" in behaviour)
    assert len(ended.trace().of("trailer")) == 1


def test_a_dry_run_ends_after_so_many_steps(build: Build, tmp_path: Path) -> None:
    ended = run(build, tmp_path, "stopping.py", VRAMTRACE_DRY_RUN_STEPS="2")
    assert ended.status == 0, ended.errors
    assert "ended after 2 steps" in ended.errors


def test_torch_may_be_imported_in_any_way(build: Build, tmp_path: Path) -> None:
    code = "import importlib; torch = importlib.import_module('torch')\n" + (
        "model = torch.nn.Linear(8, 8).cuda(); o = torch.optim.Adam(model.parameters())\n"
        "for _ in range(3): model(torch.zeros(2, 8, device='cuda')).sum().backward(); o.step()\n"
    )
    ended = build.python(tmp_path, code)
    assert ended.status == 0, ended.errors
    trace = ended.trace()
    assert {p.get("name") for p in trace.labels("PARAMETER")} == {"weight", "bias"}
    assert trace.features()["requested_sizes"][0]


def test_children_leave_the_trace_alone(build: Build, tmp_path: Path) -> None:
    code = """
import os, subprocess, sys, torch
from torch.utils.data import DataLoader
x = torch.zeros(1 << 20, device="cuda")
rows = [row.sum().item() for row in DataLoader(torch.ones(8, 4), num_workers=2)]
child = os.fork()
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
subprocess.run([sys.executable, "-c", "print('child')"], check=True)
print(sum(rows), torch.cuda.memory_stats()["allocation.all.allocated"])
"""
    ended = build.python(tmp_path, code)
    assert ended.status == 0, ended.errors
    assert ended.output.splitlines() == ["child", "32.0 1"]
    assert "vramtrace" not in ended.errors
    assert sorted(p.name for p in tmp_path.iterdir()) == ["script.py", "t.vtrace"]
    assert len(ended.trace().of("block_allocate")) == 1
    assert len(ended.trace().of("trailer")) == 1


def test_unusual_optimizers_are_survived_and_named(build: Build, tmp_path: Path) -> None:
    recorded = run(build, tmp_path, "unusual_steps.py")
    assert recorded.status == 0, recorded.errors
    assert "vramtrace" not in recorded.errors
    trace = recorded.trace()
    assert trace.features()["labels"][0], trace.features()["labels"]
    assert len(trace.of("block_allocate")) == int(recorded.output.split("done ")[1])
    live_blocks_match(trace)
    # Four optimizers, one a parameter, make three steps, not twelve.
    ends = [p for p in trace.of("step") if p.get("edge") == "EDGE_OPTIMIZER_END"]
    assert [p.get("number") for p in ends[:12]] == [n for n in range(3) for _ in range(4)]
    states = {(p.get("name"), p.texts.get("state_key")) for p in trace.labels("OPTIMIZER_STATE")}
    for layer in ("0", "1"):
        for part in ("weight", "bias"):
            assert {(f"{layer}.{part}", "exp_avg"), (f"{layer}.{part}", "exp_avg_sq")} <= states
    # An optimizer a parameter: each is labelled a few times a step, not once for each of the others.
    per_step = len([p for p in trace.labels("PARAMETER") if p.sequence < ends[3].sequence]) / 4
    assert per_step <= 4
