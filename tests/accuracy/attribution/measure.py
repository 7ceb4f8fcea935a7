"""script/accuracy attribution: every block of every case, told against true, with labels and without.

VRAMTRACE_CASES=name,name runs some; VRAMTRACE_KEEP=FOLDER keeps traces and truths there and,
where it has them, judges those again without running anything."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from recording import Build, default_build

from script.figures import Figure, say
from tests.accuracy.attribution import named
from tests.accuracy.attribution.cases import CASES, Case
from tests.accuracy.attribution.runs import GPU, told, watched
from tests.accuracy.attribution.score import Score, score

LABELS = {"labels": True, "no labels": False}
TARGET = {"labels": 99.9, "no labels": 97.0}
PLACES = ("at the peak", "over the run")
Scores = dict[tuple[str, str], Score]  # by labels and place


def measure_case(build: Build, case: Case, folder: Path) -> Scores:
    truth = watched(build, case, folder / "watched")
    scores: Scores = {}
    for name, labels in LABELS.items():
        blocks = told(build, case, folder / name.replace(" ", "-"), labels)
        for place, found in zip(PLACES, score(blocks, truth)):
            scores[(name, place)] = found
    return scores


def sum_of(scores: list[Score]) -> Score:
    """Every case counts the same, whatever its size: weights are shares of the case's bytes."""
    total = Score()
    for each in scores:
        whole = max(1, each.all)

        def part(weight: int, whole: int = whole) -> int:
            return round(1e9 * weight / whole)

        total.all += part(each.all)
        total.right += part(each.right)
        total.unknown += part(each.unknown)
        total.unnamed += part(each.unnamed)
        total.names_all += part(each.names_all)
        total.names_right += part(each.names_right)
        for mine, theirs in (
            (total.told, each.told),
            (total.true, each.true),
            (total.both, each.both),
            (total.confused, each.confused),
        ):
            mine.update(Counter({key: part(weight) for key, weight in theirs.items()}))
    return total


def say_case(case: Case, scores: Scores) -> None:
    say(
        f"  {case}: "
        + "; ".join(
            f"{labels} {place} {100 * found.share_right:.3f} %"
            f" (unknown {100 * found.unknown / max(1, found.all):.3f} %)"
            for (labels, place), found in scores.items()
        )
    )
    for (labels, place), found in scores.items():
        for (true, said, rule), weight in found.confused.most_common(4):
            if weight > 0.0002 * found.all:
                say(
                    f"    {labels}, {place}: {100 * weight / found.all:.3f} %"
                    f" {true} told as {said} (rule {rule})"
                )
        if found.unnamed > 0.001 * found.all:
            say(f"    {labels}, {place}: the witness cannot name {100 * found.unnamed / found.all:.2f} %")


def figures_of(scores: dict[str, Scores]) -> list[Figure]:
    figures = []
    for labels in LABELS:
        for place in PLACES:
            parts = {name: each[(labels, place)] for name, each in scores.items()}
            whole = sum_of(list(parts.values()))
            worst = min(parts, key=lambda name: parts[name].share_right)
            basis = f"{len(parts)} scripts on {GPU}, each counted the same; {labels}"
            what = f"attribution, {labels}, {place}"
            figures += [
                Figure(f"{what}: right", 100 * whole.share_right, "%", "higher", basis, TARGET[labels]),
                Figure(f"{what}: worst", 100 * parts[worst].share_right, "%", "higher", worst),
                Figure(f"{what}: unknown", 100 * whole.unknown / max(1, whole.all), "%", "lower", basis, 0.1),
            ]
            for memory_class in sorted(whole.true | whole.told):
                share = whole.true[memory_class] / max(1, whole.all)
                detail = f"{100 * share:.2f} % of the bytes"
                for measured, value in (
                    ("precision", whole.precision(memory_class)),
                    ("recall", whole.recall(memory_class)),
                ):
                    figures.append(
                        Figure(f"{what}: {memory_class}, {measured}", 100 * value, "%", "higher", detail)
                    )
    return figures


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def measure() -> list[Figure]:
    build = default_build()
    scores: dict[str, Scores] = {}
    chosen = os.environ.get("VRAMTRACE_CASES", "").split(",")
    for case in CASES:
        if chosen != [""] and case.name not in chosen:
            continue
        if case.missing:
            say(f"  {case}: left out, not installed: {', '.join(case.missing)}")
            continue
        with contextlib.ExitStack() as stack:
            kept = os.environ.get("VRAMTRACE_KEEP")
            folder = Path(kept, case.name) if kept else stack.enter_context(temporary_folder())
            scores[case.name] = measure_case(build, case, folder)
        say_case(case, scores[case.name])
    figures = figures_of(scores)
    return figures if chosen != [""] else [*figures, *named.measure()]
