"""The viewer's own checks, and its page in a browser on traces that are recorded for it."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

from script.checks.outcome import Outcome, State, failed, passed, read_junit
from script.checks.process import LOGS, ROOT, run, say
from tests.bench.repeat import repeat

VIEWER = ROOT / "viewer"
NODE = ROOT / ".venv/bin/node"
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
# name: the simulated GPU, the program, the exit status of its dry run
TRACES = {
    "gpt2": ("rtx4090", ("gpt2.py", "--steps", "3"), 0),
    "oom": ("rtx3060-12", ("gpt2.py", "--batch", "16"), 1),
}

LONG_EVENTS = 200_000  # several for each bucket of the timeline, and more than lie around the peak


def tool(name: str, *arguments: str | Path) -> Outcome:
    """A script of viewer/node_modules with arguments, in viewer/."""
    status, tail = run(f"viewer-{name}", [NODE, *arguments], folder=VIEWER)
    return passed(f"viewer/{name}") if status == 0 else failed(f"viewer/{name}", tail)


def unit_tests() -> list[Outcome]:
    report = LOGS / "viewer-unit.xml"
    report.unlink(missing_ok=True)
    command = [NODE, "node_modules/vitest/vitest.mjs", "run", "--reporter=junit", f"--outputFile={report}"]
    run("viewer-unit", command, folder=VIEWER)
    return read_junit(report, "viewer")


def record(folder: Path, name: str) -> Outcome | Path:
    gpu, program, expected = TRACES[name]
    trace = folder / f"{name}.vtrace"
    command = [ROOT / "build/release/bin/vramtrace", "dry-run", "--gpu", gpu, "-o", trace, "--"]
    command += [ROOT / ".venv/bin/python", ROOT / "tests/training" / program[0], *program[1:]]
    status, tail = run(f"viewer-record-{name}", command, folder=folder)
    return trace if status == expected else failed(f"viewer/record-{name}", tail)


def browser_tests() -> list[Outcome]:
    if shutil.which(CHROMIUM) is None:
        return [Outcome("viewer/browser", State.SKIPPED, f"{CHROMIUM} is missing: apt-get install chromium")]
    report = LOGS / "viewer-browser.xml"
    report.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="vramtrace-viewer-") as name:
        traces = [record(Path(name), trace) for trace in TRACES]
        broken = [trace for trace in traces if isinstance(trace, Outcome)]
        if broken:
            return broken
        long = Path(name) / "long.vtrace"
        repeat(traces[0], long, LONG_EVENTS)
        environment = {
            "VRAMTRACE_LONG": str(long),
            "VRAMTRACE": str(ROOT / "build/release/bin/vramtrace"),
            "VRAMTRACE_TRACES": ":".join(map(str, traces)),
            "CHROMIUM": CHROMIUM,
            "SCREENSHOTS": str(LOGS / "viewer-pictures"),
        }
        command = [NODE, "--test", "--test-concurrency=2", "--test-reporter=junit"]
        command += [f"--test-reporter-destination={report}", *sorted(VIEWER.glob("test/browser/*.test.mjs"))]
        run("viewer-browser", command, environment, folder=VIEWER)
    return read_junit(report, "viewer/browser")


def check_viewer() -> list[Outcome]:
    if not NODE.exists():
        return [failed("viewer/node", f"{NODE} is missing: script/bootstrap")]
    started = time.monotonic()
    outcomes = [
        tool("types", "node_modules/typescript/bin/tsc", "--noEmit"),
        tool("lint", "node_modules/@biomejs/biome/bin/biome", "check", "."),
        *unit_tests(),
        *browser_tests(),
    ]
    say(f"  viewer: {time.monotonic() - started:.0f} s; 120 s is what it may take")
    return outcomes
