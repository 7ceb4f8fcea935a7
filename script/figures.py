"""Figures of script/bench and script/accuracy: how they are printed and written."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

EXIT_FAILED = 1
EXIT_USAGE = 2


@dataclass(frozen=True)
class Figure:
    """`target` is None where none is set; `basis` says how it was measured, so that it can be done again."""

    name: str
    value: float
    unit: str
    better: str  # "lower" or "higher"
    basis: str
    target: float | None = None


def shown(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def print_table(figures: list[Figure]) -> None:
    rows = [("figure", "value", "unit", "target", "basis")]
    for figure in figures:
        target = "" if figure.target is None else shown(figure.target)
        rows.append((figure.name, shown(figure.value), figure.unit, target, figure.basis))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip())


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(
    program: str,
    measurements: dict[str, Callable[[], list[Figure]]],
    not_built: dict[str, str],
    options_of_measurements: argparse.ArgumentParser | None = None,
) -> int:
    """Runs the named measurements, or all. `not_built`: names that are planned, and what they wait for.

    The options of measurements are accepted and left to them.
    """
    parents = [options_of_measurements] if options_of_measurements else []
    parser = argparse.ArgumentParser(prog=program, parents=parents)
    parser.add_argument("name", nargs="*", help=f"{', '.join(measurements)}; all when none is given")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="also write one JSON object a figure, one a line"
    )
    options = parser.parse_args()
    for name in options.name:
        if name in not_built:
            say(f"{program}: {name} is not built yet: {not_built[name]}")
            return EXIT_USAGE
        if name not in measurements:
            say(f"{program}: unknown: {name}; there are {', '.join(measurements)}")
            return EXIT_USAGE
    figures: list[Figure] = []
    failures = []
    for name in options.name or measurements:
        say(f"{program}: {name}")
        try:
            figures += measurements[name]()
        except (RuntimeError, OSError, AssertionError) as error:
            failures.append(f"{program}: {name} failed: {error}")
    print_table(figures)
    if options.json:
        options.json.write_text("".join(json.dumps(asdict(figure)) + "\n" for figure in figures))
    for failure in failures:
        say(failure)
    return EXIT_FAILED if failures else 0
