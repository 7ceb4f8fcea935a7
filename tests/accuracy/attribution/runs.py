"""Runs a script twice, watched and as a user would, and reads what vramtrace says of every block."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from recording import Build, run_python

from tests.accuracy.attribution.cases import FOLDER, Case
from tests.accuracy.attribution.score import Told
from tests.accuracy.attribution.truth import Lived, read

GPU = "h200"  # large enough for every case


def lives_program(build: Build) -> Path:
    found = sorted(path for path in build.folder.rglob("attribution_lives") if os.access(path, os.X_OK))
    if not found:
        raise FileNotFoundError(f"attribution_lives: not in {build.folder}; build it")
    return found[0]


def watched(build: Build, case: Case, folder: Path) -> list[Lived]:
    folder.mkdir(parents=True, exist_ok=True)
    truth = folder / "truth.json"
    if truth.is_file():
        return read(json.loads(truth.read_text()))
    command = [FOLDER / "witness.py", truth, case.script, *case.options.split()]
    run = run_python(build, command, folder / "unused.vtrace", GPU, recorded=False)
    if run.status != 0 or not truth.is_file():
        truth.unlink(missing_ok=True)
        raise RuntimeError(f"{case}, watched: status {run.status}\n{run.errors[-2000:]}")
    return read(json.loads(truth.read_text()))


def told(build: Build, case: Case, folder: Path, labels: bool) -> list[Told]:
    folder.mkdir(parents=True, exist_ok=True)
    trace, done = folder / "run.vtrace", folder / "done"
    if done.is_file():
        return classes(build, trace)
    off = {} if labels else {"VRAMTRACE_OFF": "labels"}
    run = run_python(build, [case.script, *case.options.split()], trace, GPU, **off)
    if run.status != 0:
        raise RuntimeError(f"{case}: status {run.status}\n{run.errors[-2000:]}")
    done.touch()
    return classes(build, trace)


def classes(build: Build, trace: Path) -> list[Told]:
    done = subprocess.run([lives_program(build), trace], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"attribution_lives: status {done.returncode}\n{done.stderr[-2000:]}")
    found = []
    for line in done.stdout.splitlines():
        block, requested, memory_class, rule, *names = line.split("\t")
        found.append(Told(int(block), int(requested), memory_class, tuple(names), rule))
    return found
