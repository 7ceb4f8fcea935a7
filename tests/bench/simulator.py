"""What a dry run costs the machine it runs on."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from recording import FOLDER, default_build, run_python

from script.figures import Figure

GPU = "rtx4090"
REPEATS = 3


def measure() -> list[Figure]:
    build = default_build()
    runs = []
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as folder:
            run = run_python(build, [FOLDER / "gpt2.py"], Path(folder) / "run.vtrace", GPU)
            if run.status != 0:
                raise RuntimeError(f"the dry run failed: {run.errors[-1000:]}")
            runs.append(run)
    basis = f"tests/training/gpt2.py (5 steps) recorded on a simulated {GPU}, median of {REPEATS}"
    seconds = statistics.median(run.seconds for run in runs)
    memory = statistics.median(run.peak_host_bytes for run in runs)
    return [
        Figure("GPT-2 dry run: wall time, imports included", seconds, "s", "lower", basis),
        Figure("GPT-2 dry run: host memory", memory, "B", "lower", basis),
    ]
