"""`script/accuracy releases`: each supported PyTorch on the simulated device, against its own counters.

What a release imports of NVIDIA's libraries is checked first, by symbol tables; then an MLP, GPT-2 and a
ResNet are trained under the recorder, and the report is compared with PyTorch's counters and objects, block
by block.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from comparison import compare, compare_identity
from matrix import FULL_MODELS, Case, cases
from recording import Build, analyze, default_build, run_with_referee, vramtrace
from report import read_report

from script.figures import Figure, say
from tests.accuracy.releases import imports
from tests.accuracy.releases.releases import RELEASES, NotInstallable, Release, install, remove

# Large enough for every run.
GPU = "h200"
CASES = ("mlp-adamw-fp32", "gpt2-adamw-bf16", "resnet50-sgd-fp32")


def chosen_cases() -> list[Case]:
    return [case for case in cases(FULL_MODELS) if case.name in CASES]


def chosen_releases() -> list[Release]:
    """VRAMTRACE_ONLY_RELEASES=2.4.1,2.8.0 runs those alone."""
    names = os.environ.get("VRAMTRACE_ONLY_RELEASES")
    return [release for release in RELEASES if not names or release.torch in names.split(",")]


def missing_names(build: Build, python: Path) -> list[str]:
    """Names and libraries that the release imports and nobody exports."""
    said = StringIO()
    with redirect_stdout(said):
        complete = imports.complete(build, python)
    return [] if complete else said.getvalue().splitlines()


def internals_off(build: Build, trace: Path) -> list[str]:
    """Rows of the recorder's table of internals that this release has otherwise: names would be poorer."""
    dumped = vramtrace(build, "dump", trace).stdout.splitlines()
    rows = [line.split(" feature ", 1)[1] for line in dumped if " feature name=" in line]
    return [f"off: {row}" for row in rows if "on=true" not in row] or ([] if rows else ["no internals told"])


def run_case(build: Build, case: Case, python: Path) -> list[str]:
    """What is wrong, empty when the report agrees with PyTorch to the byte."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            run, referee = run_with_referee(
                build, case.script, list(case.arguments), Path(folder), GPU, python
            )
            report = read_report(analyze(build, run.trace))
        except (RuntimeError, TimeoutError) as error:
            return [str(error)]
        wrong = [*compare(report, referee).problems, *compare_identity(report)]
        return [*wrong, *internals_off(build, run.trace)]


def measure_release(build: Build, release: Release) -> list[Figure]:
    python = install(release)
    if os.environ.get("VRAMTRACE_UPDATE_IMPORTS"):
        imports.add_to_list(build, release.torch, python)
    problems = missing_names(build, python)
    for problem in problems:
        say(f"    {problem}")
    exact = 0
    for case in chosen_cases():
        wrong = run_case(build, case, python)
        exact += not wrong
        say(f"  {release}, {case}: {'exact' if not wrong else f'{len(wrong)} differences'}")
        for problem in wrong[:5]:
            say(f"    {problem}")
    basis = "counts, peaks, classes, names and identity equal to the byte: " + ", ".join(CASES)
    count = len(CASES)
    return [
        Figure(f"releases: {release}, names missing", len(problems), "lines", "lower", "symbol tables", 0),
        Figure(f"releases: {release}, runs exact", exact, f"of {count}", "higher", basis, count),
    ]


def measure() -> list[Figure]:
    build = default_build()
    figures: list[Figure] = []
    for release in chosen_releases():
        try:
            figures += measure_release(build, release)
        except NotInstallable as error:
            say(f"  {release}: not installable here: {error}")
        finally:
            if not os.environ.get("VRAMTRACE_KEEP_RELEASES"):
                remove(release)
    return figures
