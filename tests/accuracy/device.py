"""A real GPU against its dry run: the same scripts recorded on both. Without a GPU nothing is compared, and
that is said. Five scripts in a few minutes: on a rented card every minute costs."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from matrix import FULL_MODELS, Case
from recording import FOLDER, TIMEOUT_SECONDS, Build, analyze, default_build, vramtrace

from script.figures import Figure, say

CASES = tuple(
    Case(
        f"{model}-{optimizer}-{precision}",
        FULL_MODELS[model][0],
        (*FULL_MODELS[model][1].split(), "--optimizer", optimizer, "--precision", precision),
    )
    for model, optimizer, precision in (
        ("mlp", "adamw", "fp32"),
        ("gpt2", "adamw", "fp32"),
        ("gpt2", "adamw", "bf16"),
        ("resnet50", "sgd", "fp32"),
        ("vit", "adamw", "bf16"),
    )
)
COUNTERS = ("peak_allocated", "peak_reserved", "peak_used")
ASK = """import torch
properties = torch.cuda.get_device_properties(0)
print(properties.name, properties.total_memory, sep="\\n")
"""


@dataclass(frozen=True)
class Card:
    name: str  # as the device calls itself
    total_bytes: int
    gpu: str  # the catalogue's id


def real_card() -> tuple[str, int] | None:
    """Name and CUDA's total of the first GPU; None where PyTorch finds none."""
    done = subprocess.run(
        [sys.executable, "-c", ASK], capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
    )
    if done.returncode != 0:
        return None
    name, total = done.stdout.splitlines()[-2:]
    return name, int(total)


def in_catalogue(build: Build, name: str, total_bytes: int) -> Card | None:
    """The row with this name whose memory is nearest: an A100 has two sizes under near names."""
    listed = json.loads(vramtrace(build, "gpus", "--format", "json").stdout)
    rows = [row for row in listed if row["device_name"] == name and row["cuda_total"]]
    if not rows:
        return None
    nearest = min(rows, key=lambda row: abs(row["cuda_total"]["bytes"] - total_bytes))
    return Card(name, total_bytes, nearest["id"])


def peaks(build: Build, command: list[str], case: Case, folder: Path) -> dict[str, int]:
    """Runs a case by a wrapper of ours and reads its peaks. A script that fails ends the measurement."""
    trace = folder / "run.vtrace"
    program = [sys.executable, str(FOLDER / case.script), *case.arguments]
    done = subprocess.run(
        [str(build.vramtrace), *command, "-o", str(trace), "--", *program],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} of {case}: status {done.returncode}\n{done.stderr[-2000:]}")
    device = analyze(build, trace)["devices"][0]
    trace.unlink()
    return {counter: device[counter]["bytes"] for counter in COUNTERS}


def compare_on(build: Build, card: Card, really: list[str]) -> list[Figure]:
    """`really`: the wrapper that runs a case on the card itself."""
    # The total that the card reports, so that ECC or a driver's reserve are not counted as an error.
    simulated = [
        "dry-run",
        "--gpu",
        card.gpu,
        "--total",
        str(card.total_bytes),
        "--steps",
        "all",
        "--in-place",
    ]
    figures = []
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            truth = peaks(build, really, case, Path(folder))
            said = peaks(build, simulated, case, Path(folder))
        for counter in COUNTERS:
            error = 100 * (said[counter] - truth[counter]) / truth[counter]
            words = counter.replace("_", " ").removeprefix("peak ")
            basis = f"{said[counter]:,} B in the dry run, {truth[counter]:,} B on {card.name}"
            figures.append(Figure(f"device {case}: {words}, error", error, "%", "lower", basis, target=0))
        say(f"  {case}: {', '.join(f'{figure.value:+.3f} %' for figure in figures[-len(COUNTERS) :])}")
    return figures


def measure(find: Callable[[], tuple[str, int] | None] = real_card) -> list[Figure]:
    build = default_build()
    found = find()
    if found is None:
        say("  skipped: PyTorch finds no GPU on this machine, nothing was compared")
        return []
    card = in_catalogue(build, *found)
    if card is None:
        say(f"  skipped: {found[0]} is not in the catalogue (vramtrace gpus), nothing was compared")
        return []
    return compare_on(build, card, ["record"])
