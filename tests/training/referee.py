"""Runs a training script unmodified and writes down what PyTorch itself says of its memory.

    python referee.py SIDE_FILE.json SCRIPT.py [ARGUMENTS...]

Written: PyTorch's counters, and the blocks that were live at the peak of allocated bytes, each with the
kinds and names of the tensors in it. The names come from the script's own objects: modules are found
with the garbage collector, their tensors looked at (data_ptr) before and after every optimizer step.
Nothing here knows of vramtrace, and no memory of the device is allocated.
"""

from __future__ import annotations

import gc
import json
import runpy
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

import torch
from blocks import Block, History
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook


class Observer:
    def __init__(self) -> None:
        self.observations: list[dict] = []
        self.names: dict[int, set[str]] = {}
        self.optimizers: dict[int, torch.optim.Optimizer] = {}
        self.roots: list[torch.nn.Module] = []
        register_optimizer_step_pre_hook(self._before_step)
        register_optimizer_step_post_hook(self._after_step)

    def _before_step(self, optimizer: torch.optim.Optimizer, *_: object) -> None:
        if id(optimizer) not in self.optimizers:
            self.optimizers[id(optimizer)] = optimizer
            self.find_modules()
        self.observe()

    def _after_step(self, *_: object) -> None:
        self.observe()

    def find_modules(self) -> None:
        modules = [o for o in gc.get_objects() if torch.nn.Module in type(o).__mro__]
        children = {id(child) for module in modules for child in module.children()}
        self.roots = [module for module in modules if id(module) not in children]
        for root in self.roots:
            for name, parameter in root.named_parameters(remove_duplicate=False):
                self.names.setdefault(id(parameter), set()).add(name)

    def observe(self) -> None:
        ordinal = torch.cuda.memory_stats().get("allocation.all.allocated", 0)
        for kind, name, tensor in self._tensors():
            if tensor.is_cuda and tensor.untyped_storage().nbytes() > 0:
                address = tensor.untyped_storage().data_ptr()
                observation = {"ordinal": ordinal, "address": address, "kind": kind, "name": name}
                self.observations.append(observation)

    def _tensors(self) -> Iterator[tuple[str, str, torch.Tensor]]:
        for root in self.roots:
            for name, parameter in root.named_parameters(remove_duplicate=False):
                yield "weight", name, parameter
                if parameter.grad is not None:
                    yield "gradient", name, parameter.grad
            for name, buffer in root.named_buffers(remove_duplicate=False):
                yield "buffer", name, buffer
        for optimizer in self.optimizers.values():
            for parameter, state in optimizer.state.items():
                for key, value in state.items():
                    if isinstance(value, torch.Tensor):
                        for name in self.names[id(parameter)]:
                            yield "optimizer_state", f"{name}.{key}", value


def describe(block: Block) -> dict:
    return {
        "address": block.address,
        "bytes": block.size,
        "requested": block.requested,
        "kinds": sorted({kind for kind, _ in block.labels}),
        "names": sorted({name for _, name in block.labels}),
    }


def check(history: History, stats: dict, segments: list[dict]) -> None:
    """The rebuilt blocks must agree with PyTorch's counters and with its final snapshot."""
    blocks = {
        block["address"]: block["size"]
        for segment in segments
        for block in segment["blocks"]
        if block["state"] == "active_allocated"
    }
    rebuilt = {block.address: block.size for block in history.live.values()}
    assert history.allocations == stats["allocation.all.allocated"], "allocations"
    assert history.peak == stats["allocated_bytes.all.peak"], "peak"
    assert rebuilt == blocks, "final blocks"


def report(observer: Observer) -> dict:
    stats = torch.cuda.memory_stats()
    snapshot = torch.cuda.memory._snapshot()
    history = History(snapshot["device_traces"][0], observer.observations)
    check(history, stats, snapshot["segments"])
    return {
        "allocated_peak": torch.cuda.max_memory_allocated(),
        "reserved_peak": torch.cuda.max_memory_reserved(),
        "allocations": stats["allocation.all.allocated"],
        "frees": stats["allocation.all.freed"],
        "segment_allocations": stats["segment.all.allocated"],
        "out_of_memory": stats["num_ooms"],
        "total_memory": torch.cuda.get_device_properties(0).total_memory,
        "blocks_at_peak": [describe(block) for block in history.at_peak()],
    }


def main() -> int:
    side_file, script, *arguments = sys.argv[1:]
    sys.argv = [script, *arguments]
    sys.path[0] = str(Path(script).resolve().parent)
    torch.cuda.memory._record_memory_history(context=None)
    observer = Observer()
    status = 0
    try:
        runpy.run_path(script, run_name="__main__")
    except Exception:
        traceback.print_exc()
        status = 1
        observer.observe()  # while the traceback keeps the script's objects alive
    Path(side_file).write_text(json.dumps(report(observer)))
    return status


if __name__ == "__main__":
    sys.exit(main())
