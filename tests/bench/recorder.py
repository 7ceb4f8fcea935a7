"""What recording costs: alternated batches, paired medians."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from recording import Build, default_build

from script.figures import Figure, say

WORKER = Path(__file__).with_name("recorder_worker.py")
GPU = "rtx4090"
RESTARTS = 3
ROUNDS = 20


class Worker:
    def __init__(self, build: Build, recorded: bool, folder: Path) -> None:
        environment = {
            "LD_PRELOAD": build.preload(recorded),
            "VRAMTRACE_SIM_GPU": GPU,
            "VRAMTRACE_OUTPUT": str(folder / "%p.vtrace"),
            "VRAMTRACE_SIM_VALUES": "off",  # the simulator's true values are not a cost of recording
        }
        self.process = subprocess.Popen(
            [sys.executable, WORKER],
            env=os.environ | environment,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(folder / f"worker-{recorded}.log").open("w"),
            text=True,
        )
        self._read()

    def _read(self) -> dict:
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"a worker ended with status {self.process.wait()}")
        return json.loads(line)

    def measure(self, work: str, history: bool = False) -> dict:
        self.process.stdin.write(f"{work} {'history' if history else '-'}\n")
        self.process.stdin.flush()
        return self._read()

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def rounds(build: Build, folder: Path) -> list[dict[str, dict]]:
    """Each round: one batch of every variant, in an order that turns."""
    bare, recorded = Worker(build, False, folder), Worker(build, True, folder)
    variants = [
        ("bare", bare.measure),
        ("recorded", recorded.measure),
        ("history", lambda work: bare.measure(work, history=True)),
    ]
    results = []
    for number in range(ROUNDS):
        turn = number % len(variants)
        order = variants[turn:] + variants[:turn]
        results.append({name: measure("micro") | measure("steps") for name, measure in order})
    bare.close()
    recorded.close()
    return results


def paired(results: list[dict[str, dict]], variant: str, key: str) -> tuple[float, float]:
    """Median of the differences to the bare batch of the same round, and of the ratios."""
    differences = [result[variant][key] - result["bare"][key] for result in results]
    ratios = [result[variant][key] / result["bare"][key] for result in results]
    return statistics.median(differences), statistics.median(ratios)


def measure() -> list[Figure]:
    build = default_build()
    results = []
    for restart in range(RESTARTS):
        say(f"  workers {restart + 1} of {RESTARTS}, {ROUNDS} rounds")
        with tempfile.TemporaryDirectory() as folder:
            results += rounds(build, Path(folder))
    basis = f"paired medians of {len(results)} alternated rounds, processor time, simulated {GPU}"
    allocations = statistics.median(result["recorded"]["allocations"] for result in results)
    figures = []
    for variant, words in (("recorded", "recorder"), ("history", "torch memory history, python stacks")):
        allocate, _ = paired(results, variant, "allocate")
        free, _ = paired(results, variant, "free")
        step, ratio = paired(results, variant, "step")
        figures += [
            Figure(f"{words}: an allocation, 30-deep stack", allocate, "ns", "lower", basis),
            Figure(f"{words}: a free, 30-deep stack", free, "ns", "lower", basis),
            Figure(
                f"{words}: an allocation and its free in a GPT-2 step",
                step / allocations,
                "ns",
                "lower",
                basis,
            ),
            Figure(f"{words}: GPT-2 step, ratio to no recording", ratio, "ratio", "lower", basis),
        ]
    return figures
