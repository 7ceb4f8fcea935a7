"""Runs a request stream on PyTorch's own caching allocator and writes down every answer.

    python real_allocator.py FOLDER [BUSY_STREAMS_LIBRARY]

FOLDER holds stream.bin (stream.py) and settings.txt; observations.bin, messages.txt, snapshots.bin and
device.json are written beside them, in the form that allocator_compare reads. Runs under the simulated device
with any release of PyTorch 2; imports nothing else.
"""

from __future__ import annotations

import array
import ctypes
import json
import struct
import sys
from pathlib import Path

import torch
from stream import FIELDS, Kind, Stream

ABSENT = -(1 << 63)
MAX_RANGES = 2  # that one request reserves: at its first attempt and at its last
STATES = {"inactive": 0, "active_allocated": 1, "active_pending_free": 2}
OUT_OF_MEMORY = getattr(torch, "OutOfMemoryError", None) or torch.cuda.OutOfMemoryError

# Where memory_stats() has each figure, in the order of allocator_compare between the address and the message.
FIGURES = (
    ("allocated_bytes", "all", "current"),
    ("reserved_bytes", "all", "current"),
    ("active_bytes", "all", "current"),
    ("requested_bytes", "all", "current"),
    ("inactive_split_bytes", "all", "current"),
    ("inactive_split", "all", "current"),
    ("segment", "all", "current"),
    ("allocation", "all", "current"),
    ("active", "all", "current"),
    ("allocated_bytes", "small_pool", "current"),
    ("reserved_bytes", "small_pool", "current"),
    ("num_alloc_retries",),
    ("num_ooms",),
    ("num_sync_all_streams",),
    ("num_device_alloc",),
    ("num_device_free",),
    ("oversize_allocations", "current"),
    ("oversize_segments", "current"),
    ("allocated_bytes", "all", "peak"),
    ("reserved_bytes", "all", "peak"),
    ("active_bytes", "all", "peak"),
    ("num_oom_rejections",),
)


class RealAllocator:
    def __init__(self, settings: list[str], busy_library: str | None) -> None:
        torch.cuda.init()
        self.settings = settings
        self.live: dict[int, torch.Tensor] = {}
        self.streams: list[torch.cuda.Stream] = [torch.cuda.default_stream()]
        self.pools: dict[int, object] = {}
        self.messages: list[str] = []
        self.observations = array.array("q")
        self.snapshots = array.array("q")
        free, self.total = torch.cuda.mem_get_info()
        self.used_elsewhere = self.total - free
        self.busy = ctypes.CDLL(busy_library) if busy_library else None
        if self.busy:
            self.busy.vramtrace_take_range.restype = ctypes.c_uint64
            self.busy.vramtrace_set_cuda_major(int(torch.version.cuda.split(".")[0]))
        statistics = torch._C._cuda_memoryStats(0)
        self.figures = [path if path[0] in statistics else None for path in FIGURES]

    def stream(self, index: int) -> torch.cuda.Stream:
        while len(self.streams) <= index:
            self.streams.append(torch.cuda.Stream())
        return self.streams[index]

    def run(self, words: array.array) -> None:
        for start in range(0, len(words), FIELDS):
            kind, handle, size, stream, pool = words[start : start + FIELDS]
            address, message = self.apply(kind, handle, size, stream, pool)
            self.observe(address, message)

    def apply(self, kind: int, handle: int, size: int, stream: int, pool: int) -> tuple[int, int]:
        if kind == Kind.ALLOCATE:
            return self.allocate(handle, size, stream, pool)
        if kind == Kind.FREE:
            self.live.pop(handle, None)
        elif kind == Kind.RECORD_STREAM:
            if handle in self.live:
                self.live[handle].record_stream(self.stream(stream))
        elif kind == Kind.EMPTY_CACHE:
            torch.cuda.empty_cache()
        elif kind == Kind.FRACTION:
            torch.cuda.set_per_process_memory_fraction(struct.unpack("d", struct.pack("q", size))[0])
        elif kind == Kind.BUSY:
            self.busy.vramtrace_set_busy(ctypes.c_void_p(self.stream(stream).cuda_stream), size)
        elif kind == Kind.SETTINGS:
            torch.cuda.memory._set_allocator_settings(self.settings[size])
        elif kind == Kind.CREATE_POOL:
            options = {"use_on_oom": bool(size & 1), "no_split": bool(size & 2)}
            self.pools[pool] = torch.cuda.MemPool(**options)
        elif kind == Kind.RELEASE_POOL:
            del self.pools[pool]
        elif kind == Kind.SNAPSHOT:
            self.snapshot()
        elif kind == Kind.RESET_PEAKS:
            torch.cuda.reset_peak_memory_stats()
        else:
            raise ValueError(f"unknown operation {kind}")
        return 0, 0

    def allocate(self, handle: int, size: int, stream: int, pool: int) -> tuple[int, int]:
        try:
            with torch.cuda.stream(self.stream(stream)):
                if pool:
                    with torch.cuda.use_mem_pool(self.pools[pool]):
                        tensor = torch.empty(size, dtype=torch.uint8, device="cuda")
                else:
                    tensor = torch.empty(size, dtype=torch.uint8, device="cuda")
        except OUT_OF_MEMORY as error:
            self.messages.append(str(error).splitlines()[0])
            return 0, len(self.messages)
        if size:
            self.live[handle] = tensor
        return tensor.data_ptr(), 0

    def observe(self, address: int, message: int) -> None:
        statistics = torch._C._cuda_memoryStats(0)
        self.observations.append(address)
        for path in self.figures:
            value = statistics if path else ABSENT
            for key in path or ():
                value = value[key]
            self.observations.append(value)
        self.observations.append(message)
        for _ in range(MAX_RANGES):
            self.observations.append(self.busy.vramtrace_take_range() if self.busy else 0)

    def snapshot(self) -> None:
        rows: list[int] = []
        for segment in torch.cuda.memory_snapshot():
            address = segment["address"]
            for block in segment["blocks"]:
                state = STATES[block["state"]]
                rows += [address, block["size"], block.get("requested_size", ABSENT) if state else 0, state]
                address += block["size"]
        self.snapshots.extend((len(rows) // 4, 0, 0, 0))
        self.snapshots.extend(rows)

    def write(self, folder: Path) -> None:
        (folder / "observations.bin").write_bytes(self.observations.tobytes())
        (folder / "snapshots.bin").write_bytes(self.snapshots.tobytes())
        (folder / "messages.txt").write_text("".join(f"{message}\n" for message in self.messages))
        device = {"version": torch.__version__, "total": self.total, "used_elsewhere": self.used_elsewhere}
        (folder / "device.json").write_text(json.dumps(device) + "\n")


def main() -> None:
    folder = Path(sys.argv[1])
    settings = (folder / "settings.txt").read_text().splitlines()
    real = RealAllocator(settings, sys.argv[2] if len(sys.argv) > 2 else None)
    real.run(Stream.read(folder / "stream.bin").words)
    real.write(folder)


if __name__ == "__main__":
    main()
