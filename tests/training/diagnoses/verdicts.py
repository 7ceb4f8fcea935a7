"""Runs a script of the diagnoses on the simulated device and reads what `vramtrace analyze` says of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from diagnoses.cases import FOLDER, Case
from recording import Build, analyze, run_python


@dataclass(frozen=True)
class Verdicts:
    found: dict[str, str]  # id to confidence, over all devices: the highest
    shown: list[str]
    report: dict

    @property
    def high(self) -> set[str]:
        return {name for name, confidence in self.found.items() if confidence == "high"}


def run_case(build: Build, case: Case, folder: Path) -> Verdicts:
    trace = folder / "run.vtrace"
    run = run_python(build, [FOLDER / case.script], trace, case.gpu, **case.environment)
    if not trace.is_file():
        raise RuntimeError(f"{case}: nothing was recorded:\n{run.errors[-2000:]}")
    report = analyze(build, trace)
    order = ["low", "medium", "high"]
    found: dict[str, str] = {}
    shown = []
    for device in report["diagnoses"]:
        for row in device["diagnoses"]:
            if row["shown"]:
                shown.append(row["id"])
            if row["state"] != "found":
                continue
            before = found.get(row["id"], "low")
            found[row["id"]] = max(before, row["confidence"], key=order.index)
    return Verdicts(found, shown, report)


def sums_that_are_wrong(report: dict) -> list[str]:
    """The shown diagnoses' own bytes and the rest are what the device held, to the byte."""
    wrong = []
    for device in report["diagnoses"]:
        total = device["rest"] + sum(row["own_bytes"] for row in device["diagnoses"] if row["shown"])
        if total != device["used"]:
            wrong.append(f"GPU {device['device']}: {total:,} B told, {device['used']:,} B used")
    return wrong
