"""How long a build from nothing takes, and what the last script/test took."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time

from recording import ROOT

from script.figures import Figure


def measure() -> list[Figure]:
    processors = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        for command in (["cmake", "--preset", "release", "-B", folder], ["cmake", "--build", folder]):
            done = subprocess.run(
                command,
                cwd=ROOT,
                env=os.environ | {"CCACHE_DISABLE": "1"},
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode != 0:
                raise RuntimeError(f"{' '.join(command)}: {done.stdout[-2000:]}")
        seconds = time.monotonic() - started
    basis = f"{processors} processors"
    figures = [Figure("release build from nothing, no ccache", seconds, "s", "lower", basis)]
    times = ROOT / "build/test-logs/seconds.json"
    if times.is_file():
        stages = json.loads(times.read_text())
        basis = f"{processors} processors; the last run: {', '.join(stages)}"
        figures.append(Figure("script/test", sum(stages.values()), "s", "lower", basis, target=1800))
    return figures
