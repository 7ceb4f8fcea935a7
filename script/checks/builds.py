"""Configuring and building a preset, and running its ctest tests."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from script.checks.outcome import Outcome, failed, passed, read_junit
from script.checks.process import JOBS, LOGS, ROOT, run

# Every finding ends the process: a sanitizer that only prints cannot fail a test.
SANITIZERS = {
    "ASAN_OPTIONS": "abort_on_error=1:detect_leaks=1:strict_string_checks=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
}
TEST_TIMEOUT_SECONDS = 300


def build_folder(preset: str) -> Path:
    return ROOT / "build" / preset


def build(preset: str, targets: tuple[str, ...] = ()) -> Outcome:
    """All of it, or some targets and what they need."""
    name = f"build/{preset}"
    make = ["cmake", "--build", "--preset", preset, "-j", str(JOBS)]
    if targets:
        make += ["--target", *targets]
    steps = (("configure", ["cmake", "--preset", preset]), ("build", make))
    for step, command in steps:
        status, tail = run(f"{preset}-{step}", command)
        if status != 0:
            return failed(name, tail)
    return passed(name)


def ctest(preset: str, kind: str, areas: tuple[str, ...] = ()) -> list[Outcome]:
    """The tests that tests/<kind> registered, or those of some areas."""
    stage = kind if preset == "release" else f"{preset}/{kind}"
    if not (ROOT / "tests" / kind / "CMakeLists.txt").is_file():
        return [failed(stage, f"tests/{kind}/CMakeLists.txt does not exist")]
    log = f"{preset}-{kind}"
    report = LOGS / f"{log}.xml"
    report.unlink(missing_ok=True)
    command = ["ctest", "--test-dir", str(build_folder(preset) / "tests" / kind), "-j", str(JOBS)]
    command += ["--output-on-failure", "--timeout", str(TEST_TIMEOUT_SECONDS), "--no-tests=error"]
    command += ["--output-junit", str(report)]
    if areas:
        command += ["-R", rf"^{kind}\.({'|'.join(areas)})\."]
    python = {"VRAMTRACE_PYTHON": str(ROOT / ".venv/bin/python")}
    run(log, command, SANITIZERS | python | {"VRAMTRACE_BUILD": str(build_folder(preset))})
    return read_junit(report, stage)


def pytest(folder: str, *options: str) -> list[Outcome]:
    """The pytest tests of a folder, on the release build."""
    stage = f"{folder.removeprefix('tests/')}"
    log = f"pytest-{folder.replace('/', '-')}"
    report = LOGS / f"{log}.xml"
    report.unlink(missing_ok=True)
    command = [str(ROOT / ".venv/bin/python"), "-m", "pytest", folder, "-q", "--tb=short", "-rs"]
    command += ["-n", str(JOBS), "--dist", "worksteal"]
    command += ["-p", "no:cacheprovider", f"--junitxml={report}", *options]
    run(log, command, {"VRAMTRACE_BUILD": os.environ.get("VRAMTRACE_BUILD", str(build_folder("release")))})
    return read_junit(report, stage)


def fuzz(seconds: int) -> list[Outcome]:
    """A short run of every libFuzzer target of the asan build, beyond the fixed number of inputs under ctest.
    What it finds stays in the build folder, and the next run starts from it."""
    folder = build_folder("asan") / "tests" / "fuzz"

    def fuzz_one(target: Path) -> Outcome:
        short = target.name.removesuffix("_fuzzer")
        found = folder / "found" / short
        found.mkdir(parents=True, exist_ok=True)
        command = [str(target), f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=2048"]
        command += [f"-artifact_prefix={LOGS}/{target.name}-", str(found)]
        command += [str(ROOT / "tests" / "fuzz" / "corpus" / short)]
        status, tail = run(f"fuzz-{short}", command, SANITIZERS, timeout=seconds + 120)
        name = f"fuzz/{short}"
        return passed(name) if status == 0 else failed(name, tail)

    with ThreadPoolExecutor(JOBS) as pool:
        outcomes = list(pool.map(fuzz_one, sorted(folder.glob("*_fuzzer"))))
    return outcomes or [failed("fuzz", f"no *_fuzzer in {folder.relative_to(ROOT)}")]
