"""script/accuracy allocator: every case, many operations, on the installed PyTorch."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from cases import CASES, compare, default_build

from script.figures import Figure, say

# For each case; all of them together are the figure's operations.
OPERATIONS = int(os.environ.get("VRAMTRACE_ALLOCATOR_OPERATIONS", "20000"))


def measure() -> list[Figure]:
    build = default_build()
    operations = differences = ooms = retries = 0
    version = ""
    with tempfile.TemporaryDirectory() as name:
        for seed, case in enumerate(CASES):
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
        f"PyTorch {version} on the simulated device; {len(CASES)} cases, {ooms:,} out of memory, "
        f"{retries:,} retries; addresses, 21 counters, messages, snapshots"
    )
    return [
        Figure("allocator: operations compared", operations, "", "higher", basis),
        Figure("allocator: differences", differences, "", "lower", basis, target=0),
    ]
