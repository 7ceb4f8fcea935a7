"""What recording costs: alternated batches, paired medians."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
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


def load(program: Path, folder: Path, arguments: list[str], limit: str) -> tuple[dict, Path]:
    """Runs recorder_load; answers what it says, and its trace."""
    trace = folder / f"{'-'.join(arguments)}.vtrace"
    environment = {"VRAMTRACE_OUTPUT": str(trace), "VRAMTRACE_MAX_SIZE": limit}
    run = subprocess.run(
        [program, *arguments], env=os.environ | environment, stdout=subprocess.PIPE, text=True, check=True
    )
    answer = json.loads(run.stdout)
    if not answer["recording"]:
        raise RuntimeError(f"recorder_load {' '.join(arguments)}: recording ended before the program did")
    return answer, trace


def analyzed(build: Build, trace: Path) -> dict:
    command = [build.vramtrace, "analyze", "--format", "json", trace]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def lost(report: dict) -> bool:
    return any(note["severity"] != "information" for note in report["notes"])


def compressed(trace: Path) -> int | None:
    """Bytes after zstd at its usual level; None where there is no zstd."""
    program = shutil.which("zstd")
    if program is None:
        return None
    return len(subprocess.run([program, "-3", "-q", "-c", trace], stdout=subprocess.PIPE, check=True).stdout)


def sizes(build: Build, program: Path, folder: Path) -> list[Figure]:
    events = 10_000_000
    answer, trace = load(program, folder, ["blocks", str(events)], "0")
    basis = f"{events:,} block events with 333 stacks of 30 frames, no limit"
    figures = [
        Figure("recorder: bytes an event", trace.stat().st_size / events, "B", "lower", basis, 16),
        Figure(
            "recorder: own memory at 10 million events", answer["memory"] / 2**20, "MiB", "lower", basis, 64
        ),
        Figure("recorder: an event by itself", answer["processor_ns"] / events, "ns", "lower", basis, 300),
    ]
    packed = compressed(trace)
    if packed is not None:
        figures.insert(
            1, Figure("recorder: bytes an event, zstd -3", packed / events, "B", "lower", basis, 3)
        )
    trace.unlink()
    return figures


def threads(build: Build, program: Path, folder: Path) -> list[Figure]:
    each = 500_000
    one, trace = load(program, folder, ["threads", "1", str(each)], "0")
    trace.unlink()
    eight, trace = load(program, folder, ["threads", "8", str(each)], "0")
    report = analyzed(build, trace)
    recorded = (
        sum(device["block_allocations"] for device in report["devices"]) - 1
    )  # the first opened the file
    trace.unlink()
    basis = f"8 threads of {each:,} events at once against one, {os.cpu_count()} processors"
    return [
        Figure(
            "recorder: events lost or doubled by 8 threads",
            abs(8 * each - recorded),
            "events",
            "lower",
            basis,
            0,
        ),
        Figure(
            "recorder: throughput of 8 threads, ratio to one",
            one["wall_ns"] / each / (eight["wall_ns"] / (8 * each)),
            "ratio",
            "higher",
            basis,
        ),
    ]


def soak(build: Build, program: Path, folder: Path) -> list[Figure]:
    events = int(os.environ.get("VRAMTRACE_BENCH_SOAK", "50000000"))
    limit = 256 * 2**20
    answer, trace = load(program, folder, ["steps", str(events)], str(limit))
    size = trace.stat().st_size
    report = analyzed(build, trace)
    device = report["devices"][0]
    trace.unlink()
    basis = f"{events:,} events, {answer['steps']:,} steps, a limit of 256 MiB"
    wrong = device["peak_allocated"]["bytes"] != answer["peak"] or lost(report)
    return [
        Figure("recorder: soak, size of the file", size / 2**20, "MiB", "lower", basis, 256),
        Figure("recorder: soak, peak differs or events are lost", int(wrong), "", "lower", basis, 0),
        Figure("recorder: soak, own memory", answer["memory"] / 2**20, "MiB", "lower", basis, 64),
        Figure(
            "recorder: soak, an event with its part of dropping",
            answer["processor_ns"] / events,
            "ns",
            "lower",
            f"{basis}; the program's own work is in it",
        ),
    ]


def start_up(build: Build) -> list[Figure]:
    """/bin/true with and without the preload, in turns."""
    differences = []
    for _ in range(200):
        taken = {}
        for name, environment in (("bare", {}), ("recorded", {"LD_PRELOAD": str(build.recorder)})):
            started = time.perf_counter_ns()
            subprocess.run(["/bin/true"], env=os.environ | environment, check=True)
            taken[name] = time.perf_counter_ns() - started
        differences.append(taken["recorded"] - taken["bare"])
    value = statistics.median(differences) / 1e6
    return [Figure("recorder: start of /bin/true", value, "ms", "lower", "median of 200 pairs, wall time", 2)]


def native(build: Build) -> list[Figure]:
    program = build.folder / "tests" / "bench" / "recorder_load"
    if not program.is_file():
        raise FileNotFoundError(f"{program}: build recorder_load first")
    figures = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in (sizes, threads, soak):
            say(f"  {part.__name__}")
            figures += part(build, program, folder)
    return figures + start_up(build)


def measure() -> list[Figure]:
    build = default_build()
    figures = native(build)
    results = []
    for restart in range(RESTARTS):
        say(f"  workers {restart + 1} of {RESTARTS}, {ROUNDS} rounds")
        with tempfile.TemporaryDirectory() as folder:
            results += rounds(build, Path(folder))
    basis = f"paired medians of {len(results)} alternated rounds, processor time, simulated {GPU}"
    allocations = statistics.median(result["recorded"]["allocations"] for result in results)
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
