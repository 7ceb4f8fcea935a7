"""The parts of `vramtrace analyze --format json` (analyzer/report/report.proto) that the tests look at."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LiveBlock:
    address: int
    size: int  # of the block
    requested: int
    memory_class: str
    names: tuple[str, ...]  # of the tensor and its aliases; optimizer state: <parameter>.<key>


@dataclass(frozen=True)
class Report:
    allocated_peak: int
    reserved_peak: int
    block_allocations: int
    live: list[LiveBlock]  # at the peak of allocated bytes
    classes: dict[str, int]  # bytes of blocks
    device_used: int
    device_used_known: bool
    identity: dict[str, int]
    mismatch: int
    out_of_memory: dict | None


def read_report(report: dict) -> Report:
    (device,) = report["devices"]
    peak = device["at_peak"]
    live = [_block(allocation) for allocation in peak["allocations"]]
    if len(live) != peak["allocation_count"]:
        raise AssertionError(f"{len(live)} of {peak['allocation_count']} live allocations are listed")
    identity = peak["identity"]
    return Report(
        allocated_peak=device["peak_allocated"]["bytes"],
        reserved_peak=device["peak_reserved"]["bytes"],
        block_allocations=device["block_allocations"],
        live=live,
        classes={row["key"]: row["block_bytes"] for row in peak["classes"]},
        device_used=identity["device_used"],
        device_used_known=identity["device_used_known"],
        identity={term["key"]: term["bytes"] for term in identity["terms"]},
        mismatch=identity["mismatch"],
        out_of_memory=device.get("out_of_memory"),
    )


def _block(allocation: dict) -> LiveBlock:
    key = allocation["state_key"]
    return LiveBlock(
        address=allocation["address"],
        size=allocation["block_bytes"],
        requested=allocation["bytes"],
        memory_class=allocation["class"],
        names=tuple(f"{name}.{key}" if key else name for name in allocation["names"]),
    )
