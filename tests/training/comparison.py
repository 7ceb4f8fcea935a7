"""Compares a report of `vramtrace analyze` with the referee's side file, byte for byte."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from report import LiveBlock, Report

NAMED_CLASSES = ("weight", "buffer", "gradient", "optimizer_state")


@dataclass(frozen=True)
class Comparison:
    problems: list[str]
    bytes_right: int
    bytes_named: int  # by either side


def compare(report: Report, referee: dict) -> Comparison:
    problems = compare_counts(report, referee)
    truth = {block["address"]: block for block in referee["blocks_at_peak"]}
    told = {block.address: block for block in report.live}
    problems += compare_live_sets(told, truth)
    right = named = 0
    for address in sorted(truth.keys() & told.keys()):
        block, expected = told[address], truth[address]
        if not expected["kinds"] and block.memory_class not in NAMED_CLASSES:
            continue
        named += expected["bytes"]
        wrong = compare_block(block, expected)
        if wrong:
            problems.append(wrong)
        else:
            right += expected["bytes"]
    return Comparison(problems, right, named)


def compare_counts(report: Report, referee: dict) -> list[str]:
    pairs = [
        ("peak allocated", report.allocated_peak, referee["allocated_peak"]),
        ("peak reserved", report.reserved_peak, referee["reserved_peak"]),
        ("block allocations", report.block_allocations, referee["allocations"]),
    ]
    return [f"{what}: {told:,} told, {true:,} true" for what, told, true in pairs if told != true]


def compare_live_sets(told: dict[int, LiveBlock], truth: dict[int, dict]) -> list[str]:
    problems = [f"{a:#x}: told {told[a].size:,} B, not live at the peak" for a in told.keys() - truth.keys()]
    for address, block in truth.items():
        if address not in told:
            problems.append(
                f"{address:#x}: {block['bytes']:,} B ({block['names']}) live at the peak, not told"
            )
        elif told[address].size != block["bytes"]:
            problems.append(f"{address:#x}: {told[address].size:,} B told, {block['bytes']:,} B true")
    return problems


def compare_block(block: LiveBlock, expected: dict) -> str:
    """Empty when class and name are right. A tied tensor may go by any of its names."""
    where = f"{block.address:#x} ({block.size:,} B)"
    kinds = expected["kinds"] or ["none of the named classes"]
    if block.memory_class not in kinds:
        return f"{where}: class {block.memory_class} ({block.name}) told, {kinds} {expected['names']} true"
    if block.name not in expected["names"]:
        return f"{where}: {block.memory_class} {block.name!r} told, {expected['names']} true"
    return ""


def compare_identity(report: Report) -> list[str]:
    """Device used is the sum of the terms, and the terms of live bytes are those of the live blocks."""
    problems = []
    total = sum(report.identity.values())
    if total != report.device_used:
        problems.append(f"identity: the terms are {total:,} B, device used is {report.device_used:,} B")
    by_class: dict[str, int] = defaultdict(int)
    for block in report.live:
        by_class[block.memory_class] += block.size
    if sum(by_class.values()) != report.allocated_peak:
        problems.append(
            f"live blocks are {sum(by_class.values()):,} B, allocated {report.allocated_peak:,} B"
        )
    for name, size in by_class.items():
        if report.classes.get(name, 0) != size:
            problems.append(
                f"class {name}: {report.classes.get(name, 0):,} B told, its blocks are {size:,} B"
            )
    return problems
