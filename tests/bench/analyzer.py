"""How fast a large trace is read, in how much memory, and how large it is."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path

from recording import FOLDER, default_build, run_python
from recording import analyze as report_of

from script.figures import Figure, say
from tests.bench.repeat import repeat

GPU = "rtx4090"
EVENTS = 1_000_000
LONG = 10_000_000  # made of the recorded one's last step, over and over
REPEATS = 3


def record(folder: Path, steps: int) -> tuple[Path, int]:
    """A trace of GPT-2 (the steps repeat each other) and the number of its events."""
    folder.mkdir()
    build = default_build()
    run = run_python(build, [FOLDER / "gpt2.py", "--steps", str(steps)], folder / "run.vtrace", GPU)
    if run.status != 0:
        raise RuntimeError(f"the recorded run failed: {run.errors[-1000:]}")
    return run.trace, report_of(build, run.trace)["trace"]["events"]


def analyze(trace: Path) -> tuple[float, int]:
    """Seconds and peak bytes of `vramtrace analyze`."""
    started = time.monotonic()
    process = subprocess.Popen([default_build().vramtrace, "analyze", trace], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"vramtrace analyze: status {process.returncode}")
    return time.monotonic() - started, usage.ru_maxrss * 1024


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        say("  recording 5 and 25 steps")
        short, short_events = record(folder / "short", 5)
        longer, longer_events = record(folder / "longer", 25)
        per_step = (longer_events - short_events) / 20
        steps = round(EVENTS / per_step)
        say(f"  recording {steps} steps of {per_step:.0f} events")
        trace, events = record(folder / "full", steps)
        size = trace.stat().st_size
        slope = (size - longer.stat().st_size) / (events - longer_events)
        seconds, peak = zip(*(analyze(trace) for _ in range(REPEATS)))
        say(f"  repeating a step to {LONG:,} events")
        long_events = repeat(longer, folder / "long.vtrace", LONG)
        long_seconds, long_peak = zip(*(analyze(folder / "long.vtrace") for _ in range(REPEATS)))
        long_basis = (
            f"best of {REPEATS}; {long_events:,} events: 25 recorded steps of GPT-2, the last repeated"
        )
        basis = f"{events:,} events: {steps} steps of GPT-2, recorded"
        return [
            Figure(
                "analyze: events a second",
                events / min(seconds),
                "1/s",
                "higher",
                f"best of {REPEATS}; {basis}",
            ),
            Figure("analyze: peak memory", max(peak), "B", "lower", basis),
            Figure("analyze, 10 million: wall time", min(long_seconds), "s", "lower", long_basis, target=3),
            Figure(
                "analyze, 10 million: peak memory", max(long_peak), "B", "lower", long_basis, target=256 << 20
            ),
            Figure("trace: bytes an event, the whole file", size / events, "B", "lower", basis),
            Figure(
                "trace: bytes one more event takes", slope, "B", "lower", f"against {longer_events:,} events"
            ),
            Figure(
                "trace: size after 5 steps", short.stat().st_size, "B", "lower", f"{short_events:,} events"
            ),
        ]
