"""Runs a training script unmodified and writes down what each of its blocks held, as PyTorch itself says.

    python witness.py TRUTH.json SCRIPT.py [ARGUMENTS...]

Every block of the run is written, with when it lived and what was seen in it (data_ptr()):

* parameters, buffers, gradients and optimizer state by the model's own names: around each optimizer step,
  and gradients where they are accumulated;
* what autograd saves: torch.autograd.graph's hooks, and those that checkpointing puts in their place while
  it computes a forward again;
* what the outermost module was called with and returned, and what the script's own variables hold before a
  forward, at backward() and at an optimizer step;
* buckets of DistributedDataParallel, gathered parameters of fully_shard.

Nothing here knows of vramtrace, and no memory of the device is allocated.
"""

from __future__ import annotations

import json
import runpy
import sys
import threading
import traceback
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

sys.path.insert(1, str(Path(__file__).resolve().parents[2] / "training"))
import referee
from blocks import Block, History
from referee import Observer, check
from torch.autograd.graph import saved_tensors_hooks
from torch.optim.optimizer import register_optimizer_step_pre_hook

MAX_DEPTH = 6
MAX_ITEMS = 4096
OPAQUE = (torch.nn.Module, torch.optim.Optimizer, type, types.ModuleType, types.FunctionType, str, int, float)
OWN_FILES = (__file__, referee.__file__)


def tensors_in(
    value: object, depth: int = 0, seen: set[int] | None = None
) -> Iterator[tuple[torch.Tensor, bool]]:
    """Tensors of a value and of what it holds; True with those of a cache of keys and values."""
    seen = set() if seen is None else seen
    if isinstance(value, torch.Tensor):
        yield value, False
    elif depth < MAX_DEPTH and id(value) not in seen and not isinstance(value, OPAQUE):
        seen.add(id(value))
        cache = type(value).__name__.endswith("Cache")
        if isinstance(value, dict):
            parts = list(value.values())
        elif isinstance(value, (list, tuple, set)):
            parts = list(value)
        else:
            parts = list(getattr(value, "__dict__", {}).values())
        for part in parts[:MAX_ITEMS]:
            for tensor, inside in tensors_in(part, depth + 1, seen):
                yield tensor, inside or cache


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor that has the bytes: of a DTensor its local one."""
    return getattr(tensor, "_local_tensor", tensor)


def clock() -> dict:
    """How many blocks were allocated and freed so far."""
    counted = torch.cuda.memory_stats_as_nested_dict().get("allocation", {})
    return counted.get("all") or {"allocated": 0, "freed": 0}


class Lives(History):
    """All blocks of a run, each with the events (allocations and frees, counted) between which it lived."""

    def __init__(self, trace: list[dict], observations: list[dict], ranges: list[tuple[int, int]]) -> None:
        self.all: list[tuple[Block, int]] = []
        self.ends: dict[int, int] = {}  # ordinal of the block to the event that freed it
        self.events = 0
        super().__init__(trace, observations)
        for block, _ in self.all:
            if any(begin < block.ordinal <= end for begin, end in ranges):
                block.labels.add(("communication", "made by a collective"))

    def _apply(self, entry: dict) -> None:
        freed = self.live.get(entry.get("addr", 0)) if entry["action"] == "free_requested" else None
        super()._apply(entry)
        if entry["action"] == "alloc":
            self.events += 1
            self.all.append((self.live[entry["addr"]], self.events))
        elif freed is not None:
            self.events += 1
            self.ends[freed.ordinal] = self.events


class Witness(Observer):
    """Sees more than names: what is saved, passed, held and gathered."""

    def __init__(self) -> None:
        super().__init__()
        self.step_ends: list[int] = []  # events before the end of each optimizer step
        self.ranges: list[tuple[int, int]] = []  # ordinals of what collectives allocated
        self.accumulating: set[int] = set()  # parameters whose gradients are watched
        self.nesting = threading.local()
        self.fully_shard_seen = False
        register_optimizer_step_pre_hook(lambda *_: self.see_held("output"))
        self._watch_saved()
        self._watch_calls()
        self._watch_buckets()

    def note(self, kind: str, tensor: torch.Tensor, name: str = "") -> None:
        tensor = plain(tensor)
        if not tensor.is_cuda:
            return
        storage = tensor.untyped_storage()
        if storage.nbytes() == 0 or storage.data_ptr() == 0:
            return
        self.observations.append(
            {"ordinal": clock()["allocated"], "address": storage.data_ptr(), "kind": kind, "name": name}
        )

    # Names around optimizer steps ---------------------------------------------------------------------

    def observe(self) -> None:
        for kind, name, tensor in self._tensors():
            self.note(kind, tensor, name)

    def _after_step(self, *arguments: object) -> None:
        super()._after_step(*arguments)
        now = clock()
        self.step_ends.append(now["allocated"] + now["freed"])

    def watch_gradients(self) -> None:
        self.find_modules()
        for root in self.roots:
            for name, parameter in root.named_parameters():
                if parameter.requires_grad and parameter.is_leaf and id(parameter) not in self.accumulating:
                    self.accumulating.add(id(parameter))
                    parameter.register_post_accumulate_grad_hook(self._accumulated(name))

    def _accumulated(self, name: str) -> Callable[[torch.Tensor], None]:
        def hook(parameter: torch.Tensor) -> None:
            if parameter.grad is not None:
                self.note("gradient", parameter.grad, name)

        return hook

    # What autograd saves ------------------------------------------------------------------------------

    def _watch_saved(self) -> None:
        def pack(tensor: torch.Tensor) -> torch.Tensor:
            self.note("activation", tensor)
            return tensor

        torch._C._autograd._push_saved_tensors_default_hooks(pack, lambda tensor: tensor)
        original = saved_tensors_hooks.__init__

        def watched(hooks: saved_tensors_hooks, pack_hook: Callable, unpack_hook: Callable) -> None:
            recomputes = type(hooks).__name__ == "_recomputation_hook"

            def pack_and_see(tensor: torch.Tensor) -> object:
                self.note("activation", tensor, "recomputed")
                return pack_hook(tensor)

            original(hooks, pack_and_see if recomputes else pack_hook, unpack_hook)

        saved_tensors_hooks.__init__ = watched

    # What the script passes and holds -----------------------------------------------------------------

    def _watch_calls(self) -> None:
        call, backward = torch.nn.Module.__call__, torch.Tensor.backward

        def watched_call(module: torch.nn.Module, *arguments: object, **keywords: object) -> object:
            depth = getattr(self.nesting, "depth", 0)
            if depth > 0 or torch._C._current_graph_task_id() != -1:  # inside another, or computed again
                return call(module, *arguments, **keywords)
            self.nesting.depth = 1
            try:
                self.before_forward(arguments, keywords)
                result = call(module, *arguments, **keywords)
                for tensor, cache in tensors_in(result):
                    self.note("output", tensor, "cache" if cache else "returned")
                return result
            finally:
                self.nesting.depth = 0

        def watched_backward(tensor: torch.Tensor, *arguments: object, **keywords: object) -> None:
            self.note("output", tensor, "loss")
            self.see_held("output")
            backward(tensor, *arguments, **keywords)

        torch.nn.Module.__call__ = watched_call
        torch.Tensor.backward = watched_backward

    def before_forward(self, arguments: tuple, keywords: dict) -> None:
        self._watch_fully_shard()
        self.watch_gradients()
        for tensor, cache in tensors_in([*arguments, *keywords.values()]):
            self.note("output" if cache else "input", tensor, "passed")
        self.see_held("input")

    def see_held(self, kind: str) -> None:
        """Variables of the script's own functions, and its globals."""
        frame = sys._getframe(1)
        while frame is not None:
            file = frame.f_code.co_filename
            own = "-packages/" not in file and "/lib/python3" not in file and "<" not in file
            if own and file not in OWN_FILES:
                for tensor, cache in tensors_in(list(frame.f_locals.values())):
                    self.note(f"held_{kind}", tensor, "cache" if cache else "")
            frame = frame.f_back

    # Buckets and gathered parameters ------------------------------------------------------------------

    def _in_range(self, function: Callable) -> Callable:
        def ranged(*arguments: object, **keywords: object) -> object:
            begin = clock()["allocated"]
            try:
                return function(*arguments, **keywords)
            finally:
                self.ranges.append((begin, clock()["allocated"]))

        return ranged

    def _watch_buckets(self) -> None:
        if not torch.distributed.is_available():
            return
        reducer = torch.distributed.Reducer
        reducer._rebuild_buckets = self._in_range(reducer._rebuild_buckets)
        reducer.__init__ = self._in_range(reducer.__init__)

    def _watch_fully_shard(self) -> None:
        group = sys.modules.get("torch.distributed.fsdp._fully_shard._fsdp_param_group")
        if group is None or self.fully_shard_seen:
            return
        self.fully_shard_seen = True
        for name in ("foreach_all_gather", "foreach_all_gather_copy_out", "foreach_reduce"):
            setattr(group, name, self._in_range(getattr(group, name)))
        gathered = group.FSDPParam
        original = gathered.init_unsharded_param

        def watched(parameter: object) -> None:
            original(parameter)
            for tensor in parameter.all_gather_outputs:
                self.note("communication", tensor, "gathered")

        gathered.init_unsharded_param = watched


def write(witness: Witness, file: Path) -> None:
    stats = torch.cuda.memory_stats()
    snapshot = torch.cuda.memory._snapshot()
    lives = Lives(snapshot["device_traces"][0], witness.observations, witness.ranges)
    check(lives, stats, snapshot["segments"])
    blocks = [
        {
            "bytes": block.size,
            "requested": block.requested,
            "begin": begin,
            "end": lives.ends.get(block.ordinal),
            "labels": sorted(block.labels),
        }
        for block, begin in lives.all
    ]
    side = {
        "events": lives.events,
        "step_ends": witness.step_ends,
        "optimizers": len(witness.optimizers),
        "blocks": blocks,
    }
    file.write_text(json.dumps(side))


def main() -> int:
    file, script, *arguments = sys.argv[1:]
    sys.argv = [script, *arguments]
    sys.path[0] = str(Path(script).resolve().parent)
    torch.cuda.memory._record_memory_history(context=None)
    witness = Witness()
    status = 0
    try:
        runpy.run_path(script, run_name="__main__")
    except Exception:
        traceback.print_exc()
        status = 1
    write(witness, Path(file))
    return status


if __name__ == "__main__":
    sys.exit(main())
