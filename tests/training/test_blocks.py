"""The referee's own arithmetic: block sizes rebuilt from a memory history."""

import pytest
from blocks import History

MIB = 1 << 20


def entry(action: str, address: int, size: int) -> dict:
    return {"action": action, "addr": address, "size": size}


def free(address: int, size: int) -> list[dict]:
    return [entry("free_requested", address, size), entry("free_completed", address, size)]


def sizes(trace: list[dict]) -> list[int]:
    return [block.size for block in History(trace, []).live.values()]


def test_small_blocks_are_rounded_to_512() -> None:
    assert sizes([entry("segment_alloc", 0, 2 * MIB), entry("alloc", 0, 1), entry("alloc", 512, 513)]) == [
        512,
        1024,
    ]


def test_large_block_keeps_a_rest_of_a_mebibyte() -> None:
    assert sizes([entry("segment_alloc", 0, 12 * MIB), entry("alloc", 0, 11 * MIB)]) == [12 * MIB]


def test_large_block_is_split_from_a_larger_rest() -> None:
    assert sizes([entry("segment_alloc", 0, 20 * MIB), entry("alloc", 0, 11 * MIB)]) == [11 * MIB]


def test_free_neighbours_are_merged() -> None:
    trace = [
        entry("segment_alloc", 0, 20 * MIB),
        entry("alloc", 0, 5 * MIB),
        entry("alloc", 5 * MIB, 4 * MIB),
    ]
    trace += [*free(0, 5 * MIB), *free(5 * MIB, 4 * MIB), entry("alloc", 0, 19 * MIB)]
    assert sizes(trace) == [20 * MIB]


def test_neighbouring_segments_are_not_merged() -> None:
    trace = [entry("segment_alloc", 0, 2 * MIB), entry("segment_alloc", 2 * MIB, 2 * MIB)]
    with pytest.raises(ValueError, match="does not fit"):
        History([*trace, entry("alloc", 0, 3 * MIB)], [])


def test_peak_is_the_first_highest_live_set() -> None:
    trace = [entry("segment_alloc", 0, 2 * MIB), entry("alloc", 0, 512), entry("alloc", 512, 512)]
    trace += [*free(512, 512), entry("alloc", 512, 400)]
    history = History(trace, [])
    assert history.peak == 1024
    assert [block.requested for block in history.at_peak()] == [512, 512]


def test_label_belongs_to_the_block_that_was_alive() -> None:
    trace = [
        entry("segment_alloc", 0, 2 * MIB),
        entry("alloc", 0, 512),
        *free(0, 512),
        entry("alloc", 0, 512),
    ]
    first = {"ordinal": 1, "address": 0, "kind": "gradient", "name": "a"}
    second = {"ordinal": 2, "address": 0, "kind": "weight", "name": "b"}
    history = History(trace, [second, first])
    assert history.live[0].labels == {("weight", "b")}
    assert history.at_peak()[0].labels == {("gradient", "a")}


def test_label_outside_every_block_is_an_error() -> None:
    trace = [entry("segment_alloc", 0, 2 * MIB), entry("alloc", 0, 512)]
    with pytest.raises(ValueError, match="lies in no block"):
        History(trace, [{"ordinal": 1, "address": 4096, "kind": "weight", "name": "a"}])


def test_expandable_segment_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="segment_map"):
        History([entry("segment_map", 0, 2 * MIB)], [])
