"""Runs the stages of script/test and prints the count."""

from __future__ import annotations

import argparse
import json
import resource
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from script.checks import builds, formatting, hygiene, installation, tidy, viewer
from script.checks.outcome import Outcome, State
from script.checks.process import LOGS, say

FUZZ_SECONDS = 20
DETAIL_LINES = 40


@dataclass(frozen=True)
class Stage:
    name: str
    what: str
    run: Callable[[], list[Outcome]]
    needs: tuple[str, ...] = ()
    only_when_named: bool = False


def lint() -> list[Outcome]:
    return [*formatting.check_formatting(), *hygiene.check_hygiene()]


def analysis() -> list[Outcome]:
    return tidy.check_tidy(deep=True)


def sanitized(preset: str, kinds: tuple[str, ...]) -> Callable[[], list[Outcome]]:
    def run() -> list[Outcome]:
        outcome = builds.build(preset, tuple(f"tests/{kind}/all" for kind in kinds))
        if outcome.state is State.FAILED:
            return [outcome]
        return [outcome, *(result for kind in kinds for result in builds.ctest(preset, kind))]

    return run


def thread_sanitized() -> list[Outcome]:
    """What runs in the threads of a program: the recorder. The analyzer has one thread."""
    areas = ("hooks", "record", "retention", "stacks", "trace")
    outcome = builds.build("tsan", tuple(f"unit_{area}" for area in areas))
    return [outcome] if outcome.state is State.FAILED else [outcome, *builds.ctest("tsan", "unit", areas)]


def preload_tests() -> list[Outcome]:
    return [*builds.ctest("release", "preload"), *builds.pytest("tests/preload")]


def training_tests() -> list[Outcome]:
    return builds.pytest("tests/training")


def accuracy_tests() -> list[Outcome]:
    return builds.pytest("tests/accuracy")


STAGES = (
    Stage("build", "the release build", lambda: [builds.build("release")]),
    Stage("unit", "unit tests", lambda: builds.ctest("release", "unit"), ("build",)),
    Stage("golden", "reports compared with kept ones", lambda: builds.ctest("release", "golden"), ("build",)),
    Stage("preload", "native and Python programs under the preload", preload_tests, ("build",)),
    Stage("training", "real PyTorch, its counters the referee", training_tests, ("build",)),
    Stage("accuracy", "a small member of each accuracy matrix", accuracy_tests, ("build",)),
    Stage("install", "cmake --install and a run from there", installation.check_installation, ("build",)),
    Stage("viewer", "the viewer's types, lint, units and browser tests", viewer.check_viewer, ("build",)),
    Stage("lint", "formats and the repository", lint, ("build",)),
    Stage("tidy", "clang-tidy over the product's sources", tidy.check_tidy, ("build",)),
    Stage("analysis", "clang-tidy's slow checks too, and over the tests", analysis, ("build",), True),
    Stage("asan", "with address and undefined sanitizers", sanitized("asan", ("unit", "golden", "fuzz"))),
    Stage("fuzz", f"{FUZZ_SECONDS} s of every fuzzer", lambda: builds.fuzz(FUZZ_SECONDS), ("asan",)),
    Stage("tsan", "the recorder's unit tests with the thread sanitizer", thread_sanitized),
)  # fmt: skip


def selected(names: list[str]) -> list[Stage]:
    """In their own order, with what they need."""
    known = {stage.name: stage for stage in STAGES}
    wanted = set(names) or {stage.name for stage in STAGES if not stage.only_when_named}
    for name in list(wanted):
        wanted.update(known[name].needs)
    return [stage for stage in STAGES if stage.name in wanted]


def processor_seconds() -> float:
    """Of all programs run so far: tells a slow stage from a busy machine."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def show_failures(outcomes: list[Outcome]) -> None:
    for outcome in outcomes:
        if outcome.state is State.FAILED:
            print(f"\nFAILED {outcome.name}")
            lines = outcome.detail.strip().splitlines()
            print("\n".join(f"    {line}" for line in lines[-DETAIL_LINES:]))


def take_interrupts() -> None:
    """A shell starts background jobs with interrupts ignored, nohup ignores the terminal's end, and so would
    every program that a test sends one."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def main() -> int:
    take_interrupts()
    parser = argparse.ArgumentParser(prog="script/test", description=__doc__)
    parser.add_argument("stage", nargs="*", help="a name of --list; all when none is given")
    parser.add_argument("--list", action="store_true", help="print the stages")
    options = parser.parse_args()
    if options.list:
        print("\n".join(f"{stage.name:10} {stage.what}" for stage in STAGES))
        return 0
    unknown = sorted(set(options.stage) - {stage.name for stage in STAGES})
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(stage.name for stage in STAGES)}")

    outcomes: list[Outcome] = []
    seconds: dict[str, float] = {}
    broken: set[str] = set()
    for stage in selected(options.stage):
        lacking = broken.intersection(stage.needs)
        if lacking:
            say(f"{stage.name}: left out, {', '.join(lacking)} failed")
            outcomes.append(Outcome(stage.name, State.FAILED, f"needs {', '.join(lacking)}, which failed"))
            continue
        say(f"{stage.name}: {stage.what}")
        started, processor = time.monotonic(), processor_seconds()
        results = stage.run()
        seconds[stage.name] = round(time.monotonic() - started, 1)
        processor = processor_seconds() - processor
        failures = [result for result in results if result.state is State.FAILED]
        say(
            f"{stage.name}: {len(results)} in {seconds[stage.name]} s "
            f"({processor:.0f} s of processor time), {len(failures)} failed"
        )
        if any(result.name.startswith("build/") for result in failures):
            broken.add(stage.name)
        outcomes += results
    LOGS.mkdir(parents=True, exist_ok=True)
    (LOGS / "seconds.json").write_text(json.dumps(seconds, indent=1) + "\n")
    return summarise(outcomes, seconds)


def summarise(outcomes: list[Outcome], seconds: dict[str, float]) -> int:
    show_failures(outcomes)
    counts = {state: sum(outcome.state is state for outcome in outcomes) for state in State}
    print("\n" + ", ".join(f"{name} {value} s" for name, value in seconds.items()))
    for outcome in outcomes:
        if outcome.state is State.SKIPPED:
            print(f"skipped {outcome.name}: {outcome.detail}")
    print(f"{counts[State.PASSED]} passed, {counts[State.FAILED]} failed", flush=True)
    return 1 if counts[State.FAILED] or not counts[State.PASSED] else 0


if __name__ == "__main__":
    sys.exit(main())
