"""script/accuracy allocator: every case on the installed PyTorch, random ones with many operations."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from cases import CASES, RECORDED, compare, default_build

from script.figures import Figure, say

# For each random case.
OPERATIONS = int(os.environ.get("VRAMTRACE_ALLOCATOR_OPERATIONS", "20000"))


def measure() -> list[Figure]:
    build = default_build()
    operations = differences = ooms = retries = 0
    version = ""
    with tempfile.TemporaryDirectory() as name:
        for seed, case in enumerate((*CASES, *RECORDED)):
            if version and tuple(map(int, version.split(".")[:2])) < case.since:
                continue
            result = compare(build, case, OPERATIONS, seed, Path(name))
            version = result.version
            say(f"  {case}: {result.operations} operations, {result.differences} differences {result.first}")
            operations += result.operations
            differences += result.differences
            ooms += result.ooms
            retries += result.retries
    basis = (
        f"PyTorch {version} on the simulated device; {len(CASES)} random and {len(RECORDED)} recorded cases, "
        f"{ooms:,} out of memory, {retries:,} retries; addresses, 22 counters, messages, snapshots"
    )
    return [
        Figure("allocator: operations compared", operations, "", "higher", basis),
        Figure("allocator: differences", differences, "", "lower", basis, target=0),
    ]
