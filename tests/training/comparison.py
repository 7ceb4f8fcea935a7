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
    """Empty when class and names are right. A tied parameter has all its names, and so have its gradient and
    the states that an optimizer keeps for it."""
    where = f"{block.address:#x} ({block.size:,} B)"
    kinds = expected["kinds"] or ["none of the named classes"]
    if block.memory_class not in kinds:
        return f"{where}: class {block.memory_class} {block.names} told, {kinds} {expected['names']} true"
    if sorted(block.names) != expected["names"]:
        return f"{where}: {block.memory_class} {sorted(block.names)} told, {expected['names']} true"
    return ""


def compare_identity(report: Report) -> list[str]:
    """Device used is the sum of the terms; classes are the sums of the live blocks."""
    problems = []
    total = sum(report.identity.values())
    if not report.device_used_known:
        problems.append("identity: device used is not known")
    if total != report.device_used or report.mismatch != 0:
        problems.append(
            f"identity: the terms are {total:,} B, device used {report.device_used:,} B, "
            f"mismatch {report.mismatch:,} B"
        )
    by_class: dict[str, int] = defaultdict(int)
    for block in report.live:
        by_class[block.memory_class] += block.size
    if sum(by_class.values()) != report.allocated_peak:
        problems.append(
            f"live blocks are {sum(by_class.values()):,} B, allocated {report.allocated_peak:,} B"
        )
    if dict(by_class) != {name: size for name, size in report.classes.items() if size}:
        problems.append(f"classes {report.classes}, by their blocks {dict(by_class)}")
    return problems
