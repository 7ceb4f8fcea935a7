"""How large the viewer's page is, how soon it shows a picture, how fast it redraws, what its tab holds."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from recording import FOLDER, ROOT, default_build, run_python

from script.figures import Figure, say
from tests.bench.repeat import repeat

GPU = "rtx4090"
EVENTS = [int(count) for count in os.environ.get("VRAMTRACE_BENCH_EVENTS", "100000 1000000 10000000").split()]
SERVED_FROM = 30_000_000  # events: above the page's own table of blocks
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
NODE = ROOT / ".venv/bin/node"


def look_at(page: str) -> dict[str, float]:
    script = ROOT / "viewer/test/browser/bench.mjs"
    done = subprocess.run(
        [NODE, script, page], cwd=script.parent, capture_output=True, text=True, timeout=900
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def embedded(trace: Path) -> tuple[dict[str, float], dict[str, float]]:
    page = trace.with_suffix(".html")
    started = time.monotonic()
    subprocess.run(
        [default_build().vramtrace, "view", "--no-forecast", trace, "-o", page],
        check=True,
        capture_output=True,
    )
    return {"size": page.stat().st_size, "seconds": time.monotonic() - started}, look_at(str(page))


def served(trace: Path) -> tuple[dict[str, float], dict[str, float]]:
    started = time.monotonic()
    with subprocess.Popen(
        [default_build().vramtrace, "view", "--serve", "--no-forecast", trace],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        try:
            address = server.stdout.readline().strip()
            return {"seconds": time.monotonic() - started}, look_at(address)
        finally:
            server.terminate()


def figures_of(trace: Path, events: int) -> list[Figure]:
    own = events >= SERVED_FROM
    made, seen = served(trace) if own else embedded(trace)
    how = f"{events:,} events, {'served' if own else 'one HTML file'}; GPT-2's last step repeated"
    name = f"view {events / 1e6:g} million events"
    figures = [
        Figure(f"{name}: vramtrace view", made["seconds"], "s", "lower", how),
        Figure(f"{name}: first picture", seen["first_picture_ms"], "ms", "lower", how, 3000),
        Figure(f"{name}: after selecting an instant", seen["select_ms"], "ms", "lower", how, 100),
        Figure(f"{name}: after a search", seen["search_ms"], "ms", "lower", how, 150),
        Figure(f"{name}: memory of the tab", seen["renderer_bytes"], "B", "lower", how, 500e6),
    ]
    if "size" in made:
        figures.insert(0, Figure(f"{name}: the page", made["size"], "B", "lower", how))
    return figures


def measure() -> list[Figure]:
    if shutil.which(CHROMIUM) is None:
        raise RuntimeError(f"{CHROMIUM} is missing: apt-get install chromium")
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        say("  recording 5 steps of GPT-2")
        run = run_python(default_build(), [FOLDER / "gpt2.py", "--steps", "5"], folder / "run.vtrace", GPU)
        if run.status != 0:
            raise RuntimeError(f"the recorded run failed: {run.errors[-1000:]}")
        for events in EVENTS:
            trace = folder / f"{events}.vtrace"
            written = repeat(run.trace, trace, events)
            say(f"  {written:,} events")
            figures += figures_of(trace, written)
            trace.unlink()
    return figures
