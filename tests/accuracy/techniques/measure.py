"""script/accuracy techniques: every technique that can be applied from outside, alone and in pairs."""

from __future__ import annotations

import statistics

from recording import default_build

from script.figures import Figure, say
from tests.accuracy.batch.runs import folder_of_runs

from .cases import PAIRS, PROGRAMS, SINGLE
from .run import Result, Runner, line

# Percent of allocated bytes.
TARGET_MEDIAN = 0.5
TARGET_WORST = 3.0


def figures_of(name: str, results: list[Result]) -> list[Figure]:
    done = [result for result in results if result.complete]
    refused = len(results) - len(done)
    basis = (
        f"{len(done)} forecasts from one dry run against another with it applied; {refused} not comparable"
    )
    figures = []
    for field, median, worst in (
        ("allocated", TARGET_MEDIAN, TARGET_WORST),
        ("reserved", None, None),
    ):
        errors = [abs(result.error(field)) for result in done]
        if not errors:
            continue
        figures += [
            Figure(f"{name} {field}: median", statistics.median(errors), "%", "lower", basis, median),
            Figure(f"{name} {field}: worst", max(errors), "%", "lower", basis, worst),
        ]
    return figures


def halves(results: list[Result]) -> tuple[list[Result], list[Result]]:
    """Those whose residuals make the bands of technique.def, and those that are held against them: of each
    technique's programs every second one."""
    seen: dict[str, int] = {}
    fitting, reporting = [], []
    for result in results:
        place = seen[result.case.techniques] = seen.get(result.case.techniques, -1) + 1
        (fitting if place % 2 == 0 else reporting).append(result)
    return fitting, reporting


def share_of(good: int, all_of_them: int) -> float:
    return 100 * good / all_of_them if all_of_them else 0.0


def figures_of_bands(results: list[Result]) -> list[Figure]:
    """Pairs made no band: all of them are held against the sum of their techniques'."""
    done = [result for result in results if result.complete]
    pairs = [result for result in done if ";" in result.case.techniques]
    fitting, reporting = halves([result for result in done if ";" not in result.case.techniques])
    for key in dict.fromkeys(result.case.techniques for result in fitting):
        mine = [result for result in fitting if result.case.techniques == key]
        for name in ("allocated", "reserved"):
            shares = [result.share(name) for result in mine]
            say(f"  {key} {name}: {len(mine)} make {100 * min(shares):+.3f} % to {100 * max(shares):+.3f} %")
    figures = []
    for what, chosen in (("alone", reporting), ("pairs", pairs)):
        for name in ("allocated", "reserved"):
            held = sum(result.held(name) for result in chosen)
            basis = f"{len(chosen)} forecasts that made no band"
            figure = f"techniques, {what}, {name}: in the band"
            figures.append(Figure(figure, share_of(held, len(chosen)), "%", "higher", basis, 95))
    edges = [edge for result in (*reporting, *pairs) for edge in result.edges]
    basis = f"{len(edges)} cards within 10 % of what {len(reporting) + len(pairs)} runs need"
    right = sum(not edge.wrong for edge in edges)
    false = sum(edge.wrong and edge.verdict == "fits" for edge in edges)
    near = sum(edge.verdict == "near" for edge in edges)
    figures += [
        Figure(
            "techniques: verdict at the edge not wrong", share_of(right, len(edges)), "%", "higher", basis, 98
        ),
        Figure("techniques: fits, and does not", false, "cards", "lower", basis, 0),
        Figure("techniques: too close to call", share_of(near, len(edges)), "%", "lower", basis, None),
    ]
    return figures


def measure() -> list[Figure]:
    build = default_build()
    figures = []
    everything: list[Result] = []
    with folder_of_runs("techniques") as folder, Runner(build, folder) as runner:
        for techniques in (*SINGLE, *PAIRS):
            results = []
            for name, program in PROGRAMS.items():
                results.append(runner.measure(name, program, techniques))
                say("  " + line(results[-1]))
            figures += figures_of(f"techniques {techniques}", results)
            everything += results
    return [*figures, *figures_of("techniques", everything), *figures_of_bands(everything)]
