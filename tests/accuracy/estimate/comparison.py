"""One case: what `vramtrace estimate` says, and what PyTorch counted in a dry run of the same."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

from recording import Build, run_python, vramtrace

from tests.accuracy.estimate.cases import Case
from tests.accuracy.estimate.models import MODELS

FOLDER = Path(__file__).resolve().parent
GPU = "a100-80-sxm"
MEMORY = "2048GiB"  # enough for every case: what fits is not the question here


@dataclass(frozen=True)
class Comparison:
    case: Case
    parameters_agree: bool
    states_estimated: int  # after the optimizer's first step, gradients included; or the weights
    states_counted: int
    peak_estimated: int
    peak_counted: int  # requested bytes
    used_low: int
    used_high: int
    reserved: int

    @property
    def peak_error(self) -> float:
        return 100 * (self.peak_estimated - self.peak_counted) / self.peak_counted

    @property
    def states_error(self) -> float:
        return 100 * (self.states_estimated - self.states_counted) / self.states_counted


def estimate(build: Build, config: Path, case: Case) -> dict:
    done = vramtrace(build, "estimate", config, *case.estimate_options(), "--format", "json")
    if done.returncode != 0:
        raise RuntimeError(f"vramtrace estimate: status {done.returncode}\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)


def dry_run(build: Build, config: Path, case: Case, gpu: str = GPU) -> dict:
    script = [FOLDER / "dry_run.py", config, *case.dry_run_options()]
    run = run_python(
        build, script, config.parent / "unused.vtrace", gpu, recorded=False, VRAMTRACE_SIM_TOTAL=MEMORY
    )
    if run.status != 0:
        raise RuntimeError(f"{case}: the dry run ended with {run.status}\n{run.errors[-2000:]}")
    return json.loads(run.output.strip().splitlines()[-1])


def states_of(estimated: dict, phase: str) -> int:
    classes = next(row["classes"] for row in estimated["phases"] if row["phase"] == phase)
    return sum(classes.get(name, 0) for name in ("weights", "gradients", "optimizer state"))


def write_config(case: Case, folder: Path) -> Path:
    model = next(model for model in MODELS if model.name == case.model)
    config = folder / "config.json"
    config.write_text(json.dumps(model.as_json()))
    return config


def compare(build: Build, case: Case) -> Comparison:
    with tempfile.TemporaryDirectory() as name:
        config = write_config(case, Path(name))
        return compare_reports(case, estimate(build, config, case), dry_run(build, config, case))


def compare_reports(case: Case, estimated: dict, counted: dict) -> Comparison:
    phase = "optimizer" if "optimizer" in counted["phases"] else "load"
    parameters = estimated["parameters"] + estimated["adapter_parameters"]
    used = estimated["device_used_without_context_bytes"]
    return Comparison(
        case,
        parameters == counted["parameters"],
        states_of(estimated, phase),
        counted["phases"][phase]["end"],
        estimated["allocated_bytes"]["expected"],
        counted["peak"],
        used["low"],
        used["high"],
        counted["reserved"],
    )
