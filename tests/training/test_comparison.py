"""The comparison itself: a report that is wrong in one place is found out."""

from __future__ import annotations

import dataclasses

import pytest
from comparison import compare, compare_identity
from report import LiveBlock, Report

WEIGHT = LiveBlock(0x1000, 1024, 1000, "weight", ("a.weight",))
STATE = LiveBlock(0x2000, 512, 512, "optimizer_state", ("tied.exp_avg", "alias.exp_avg"))
OTHER = LiveBlock(0x3000, 512, 4, "activation", ())
RIGHT = Report(
    allocated_peak=2048,
    reserved_peak=4096,
    block_allocations=3,
    live=[WEIGHT, STATE, OTHER],
    classes={"weight": 1024, "optimizer_state": 512, "activation": 512},
    device_used=5000,
    device_used_known=True,
    identity={"weight": 1000, "optimizer_state": 512, "activation": 4, "rounding": 532, "rest": 2952},
    mismatch=0,
    out_of_memory=None,
)
REFEREE = {
    "allocated_peak": 2048,
    "reserved_peak": 4096,
    "allocations": 3,
    "blocks_at_peak": [
        {"address": 0x1000, "bytes": 1024, "kinds": ["weight"], "names": ["a.weight"]},
        {
            "address": 0x2000,
            "bytes": 512,
            "kinds": ["optimizer_state"],
            "names": ["alias.exp_avg", "tied.exp_avg"],
        },
        {"address": 0x3000, "bytes": 512, "kinds": [], "names": []},
    ],
}


def with_block(old: LiveBlock, **changes: object) -> Report:
    live = [dataclasses.replace(block, **changes) if block is old else block for block in RIGHT.live]
    return dataclasses.replace(RIGHT, live=live)


def test_the_right_report_passes() -> None:
    comparison = compare(RIGHT, REFEREE)
    assert comparison.problems == []
    assert comparison.bytes_right == comparison.bytes_named == 1536
    assert compare_identity(RIGHT) == []


@pytest.mark.parametrize(
    "wrong",
    [
        dataclasses.replace(RIGHT, allocated_peak=2047),
        dataclasses.replace(RIGHT, reserved_peak=4097),
        dataclasses.replace(RIGHT, block_allocations=2),
        dataclasses.replace(RIGHT, live=[WEIGHT, STATE]),
        with_block(WEIGHT, address=0x1200),
        with_block(WEIGHT, size=512),
        with_block(WEIGHT, memory_class="gradient"),
        with_block(WEIGHT, names=("b.weight",)),
        with_block(WEIGHT, names=("a.weight", "b.weight")),
        with_block(WEIGHT, names=()),
        with_block(STATE, names=()),
        with_block(STATE, names=("tied.exp_avg",)),
        with_block(STATE, names=("other.exp_avg",)),
        with_block(OTHER, memory_class="weight"),
    ],
)
def test_a_wrong_report_is_found(wrong: Report) -> None:
    assert compare(wrong, REFEREE).problems


@pytest.mark.parametrize(
    "wrong",
    [
        dataclasses.replace(RIGHT, device_used=5001),
        dataclasses.replace(RIGHT, mismatch=1),
        dataclasses.replace(RIGHT, device_used_known=False),
        dataclasses.replace(RIGHT, classes={"weight": 2048}),
        dataclasses.replace(RIGHT, live=[WEIGHT]),
    ],
)
def test_an_identity_that_does_not_add_up_is_found(wrong: Report) -> None:
    assert compare_identity(wrong)
