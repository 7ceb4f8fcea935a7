"""Runs a program and writes the requests that it made of PyTorch's caching allocator as a request stream.

    python record_stream.py STREAM PROGRAM [ARGUMENT...]

From PyTorch's own memory history; what it does not hold (record_stream, settings) is not in the stream.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import torch
from stream import Kind, Stream

MAX_ENTRIES = 50_000_000


def to_stream(trace: list[dict]) -> Stream:
    out = Stream()
    handles: dict[int, int] = {}
    streams = {0: 0}
    for entry in trace:
        action, address = entry["action"], entry["addr"]
        if action == "alloc":
            handles[address] = len(out) + 1
            stream = streams.setdefault(entry["stream"], len(streams))
            out.add(Kind.ALLOCATE, handle=handles[address], size=entry["size"], stream=stream)
        elif action == "free_requested":
            out.add(Kind.FREE, handle=handles.pop(address))
    return out


def main() -> None:
    path, program, *arguments = sys.argv[1:]
    sys.argv = [program, *arguments]
    sys.path[0] = str(Path(program).resolve().parent)
    torch.cuda.memory._record_memory_history(max_entries=MAX_ENTRIES, context=None, stacks="python")
    try:
        runpy.run_path(program, run_name="__main__")
    finally:
        trace = torch.cuda.memory._snapshot()["device_traces"][0]
        to_stream(trace).write(Path(path))


if __name__ == "__main__":
    main()
