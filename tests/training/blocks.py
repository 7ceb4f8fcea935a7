"""Rebuilds the caching allocator's blocks from PyTorch's own memory history.

The history names the bytes that were asked for; what counts as allocated is the block that was handed
out, which may be larger. Knowing where every block lies, its size follows from the free range that it
was cut from (CUDACachingAllocator.cpp: round_size, should_split). check() in referee.py compares the outcome
with PyTorch's counters and its final snapshot, so that a change of the rules cannot pass unnoticed.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field

SMALL_BYTES = 1 << 20  # kSmallSize: larger requests are served from the large pool
ROUNDING = 512  # kMinBlockSize


@dataclass
class Block:
    address: int
    size: int
    requested: int
    ordinal: int  # 1 for the first allocation of the process
    labels: set[tuple[str, str]] = field(default_factory=set)


class FreeRanges:
    """Disjoint free ranges [begin, end) inside segments; neighbours of one segment are merged."""

    def __init__(self) -> None:
        self.begins: list[int] = []
        self.ends: dict[int, int] = {}
        self.segments: dict[int, int] = {}

    def _insert(self, begin: int, end: int) -> None:
        bisect.insort(self.begins, begin)
        self.ends[begin] = end

    def _remove(self, begin: int) -> int:
        self.begins.pop(bisect.bisect_left(self.begins, begin))
        return self.ends.pop(begin)

    def add_segment(self, begin: int, size: int) -> None:
        self.segments[begin] = begin + size
        self._insert(begin, begin + size)

    def remove_segment(self, begin: int) -> None:
        if self._remove(begin) != self.segments.pop(begin):
            raise ValueError(f"segment {begin:#x} was freed with blocks in it")

    def take(self, begin: int, requested: int) -> int:
        """Cuts a block off the range that starts at `begin`; returns its size."""
        end = self._remove(begin)
        size = max(ROUNDING, -(-requested // ROUNDING) * ROUNDING)
        rest = end - begin - size
        if rest < 0:
            raise ValueError(f"block of {size} B at {begin:#x} does not fit its free range")
        if rest >= ROUNDING if size <= SMALL_BYTES else rest > SMALL_BYTES:
            self._insert(begin + size, end)
            return size
        return end - begin

    def give_back(self, begin: int, size: int) -> None:
        end = begin + size
        if end in self.ends and end not in self.segments:
            end = self._remove(end)
        at = bisect.bisect_left(self.begins, begin) - 1
        if at >= 0 and begin not in self.segments:
            before = self.begins[at]
            if self.ends[before] == begin:
                self._remove(before)
                begin = before
        self._insert(begin, end)


class History:
    """The blocks over time; ordinals count allocations, as memory_stats()'s allocation count does.

    An observation says that at a moment when `ordinal` allocations had been made, a tensor of a kind
    and name was alive at an address. It was alive just after that allocation, too, so the block over
    its address at that point is its own. A label holds for the whole life of its block.
    """

    def __init__(self, trace: list[dict], observations: list[dict]) -> None:
        self.allocations = 0
        self.allocated = 0
        self.peak = 0
        self.live: dict[int, Block] = {}
        self._free = FreeRanges()
        self._sizes: dict[int, int] = {}
        self._at_peak: list[Block] = []
        self._observations: dict[int, list[dict]] = {}
        for observation in observations:
            self._observations.setdefault(observation["ordinal"], []).append(observation)
        for entry in trace:
            self._apply(entry)

    def _apply(self, entry: dict) -> None:
        action = entry["action"]
        if action in ("oom", "snapshot"):
            return
        address, size = entry["addr"], entry["size"]
        if action == "segment_alloc":
            self._free.add_segment(address, size)
        elif action == "segment_free":
            self._free.remove_segment(address)
        elif action == "alloc":
            self._allocate(address, size)
        elif action == "free_requested":
            if self.allocated == self.peak and not self._at_peak:
                self._at_peak = list(self.live.values())
            self.allocated -= self.live.pop(address).size
        elif action == "free_completed":
            self._free.give_back(address, self._sizes.pop(address))
        else:
            raise ValueError(f"unknown entry of the memory history: {action}")

    def _allocate(self, address: int, requested: int) -> None:
        self.allocations += 1
        size = self._free.take(address, requested)
        self._sizes[address] = size
        self.live[address] = Block(address, size, requested, self.allocations)
        self.allocated += size
        if self.allocated > self.peak:
            self.peak = self.allocated
            self._at_peak = []
        for observation in self._observations.pop(self.allocations, ()):
            self._label(observation)

    def _label(self, observation: dict) -> None:
        address = observation["address"]
        block = self.live.get(address)
        if block is None:  # a view that starts inside
            inside = (b for b in self.live.values() if b.address <= address < b.address + b.size)
            block = next(inside, None)
        if block is None:
            raise ValueError(f"{observation} lies in no block")
        block.labels.add((observation["kind"], observation["name"]))

    def at_peak(self) -> list[Block]:
        """The live set when the peak was first reached."""
        return self._at_peak or list(self.live.values())
