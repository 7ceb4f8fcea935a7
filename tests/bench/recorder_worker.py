"""Measures batches of work on request, for recorder.py.

Reads one request a line on standard input and answers with one line of JSON. Several workers, with and
without the recorder, wait for their turn, so that their batches alternate within a fraction of a second:
processes that run one after the other differ by more than what is to be measured. Times are processor time of
all threads: kernels take none on the simulated device, and a busy machine does not add to it.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable

import torch
from transformers import GPT2Config, GPT2LMHeadModel

STACK_DEPTH = 30
TENSORS = 2000
STEPS = 4


def deep(depth: int, work: Callable[[], dict]) -> dict:
    return deep(depth - 1, work) if depth else work()


def allocate_and_free() -> dict:
    empty, device, clock = torch.empty, torch.device("cuda"), time.process_time_ns
    started = clock()
    tensors = [empty(4096, device=device) for _ in range(TENSORS)]
    allocated = clock()
    del tensors
    freed = clock()
    return {"allocate": (allocated - started) / TENSORS, "free": (freed - allocated) / TENSORS}


class Training:
    def __init__(self) -> None:
        with torch.device("cuda"):
            self.model = GPT2LMHeadModel(GPT2Config())
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        self.tokens = torch.randint(0, 50257, (8, 512)).cuda()

    def steps(self) -> dict:
        before = torch.cuda.memory_stats()["allocation.all.allocated"]
        started = time.process_time_ns()
        for _ in range(STEPS):
            self.model(input_ids=self.tokens, labels=self.tokens).loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
        elapsed = time.process_time_ns() - started
        allocations = torch.cuda.memory_stats()["allocation.all.allocated"] - before
        return {"step": elapsed / STEPS, "allocations": allocations / STEPS}


def main() -> None:
    # One processor for all workers: they take turns, so that none of them gets a better one.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    training = Training()
    training.steps()
    deep(STACK_DEPTH, allocate_and_free)
    gc.disable()
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        work, history = line.split()
        if history == "history":
            torch.cuda.memory._record_memory_history(stacks="python", max_entries=100_000)
        answer = training.steps() if work == "steps" else deep(STACK_DEPTH, allocate_and_free)
        if history == "history":
            torch.cuda.memory._record_memory_history(enabled=None)
        gc.collect()
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
