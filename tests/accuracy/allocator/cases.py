"""One comparison of the model with the real allocator, and the list of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from stream import MIB, Profile, Stream, random_stream

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[2]


class NotBuilt(Exception):
    """What is missing from the build folder."""


class Build:
    """What a comparison needs from the build folder."""

    def __init__(self, folder: Path) -> None:
        self.compare = self._find(folder, "tests/accuracy/allocator/allocator_compare")
        self.busy_streams = self._find(folder, "tests/accuracy/allocator/liballocator_busy_streams.so")
        self.simulator = self._find(folder, "lib/vramtrace/simulator/preload.txt").parent
        names = (self.simulator / "preload.txt").read_text().split()
        missing = [name for name in names if not (self.simulator / name).is_file()]
        if missing:
            raise NotBuilt(f"{', '.join(missing)}: not in {self.simulator}")
        self.preload = ":".join(map(str, [self.busy_streams, *(self.simulator / name for name in names)]))

    @staticmethod
    def _find(folder: Path, place: str) -> Path:
        if not (folder / place).is_file():
            raise NotBuilt(f"{place}: not in {folder}; build it, or set VRAMTRACE_BUILD")
        return folder / place


def default_build() -> Build:
    return Build(Path(os.environ.get("VRAMTRACE_BUILD", ROOT / "build" / "release")).resolve())


@dataclass(frozen=True)
class Case:
    """A stream under one value of PYTORCH_CUDA_ALLOC_CONF; `later` are settings it changes to.

    The stream is random, or what `program` of tests/training asked for on a card where it fits."""

    settings: str
    profile: Profile
    since: tuple[int, int] = (2, 0)
    later: tuple[str, ...] = ()
    program: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.program:
            return (
                f"{' '.join(self.program)}, {self.settings or 'default'}, {self.profile.capacity // MIB} MiB"
            )
        streams = f", {self.profile.streams} streams" if self.profile.streams > 1 else ""
        pools = f", {self.profile.pools} pools" if self.profile.pools else ""
        return f"{self.settings or 'default'}, {self.profile.capacity // MIB} MiB{streams}{pools}"


@dataclass(frozen=True)
class Result:
    version: str
    operations: int
    differences: int
    ooms: int
    retries: int
    first: str


PLAIN = Profile(capacity=256 * MIB)
SHARED = Profile(capacity=1024 * MIB, streams=2, record_stream=0.05, busy=0.002, fraction=0.0005)
CROWDED = Profile(capacity=4096 * MIB, streams=3, record_stream=0.2, busy=0.01)
POOLS = Profile(capacity=1024 * MIB, streams=2, record_stream=0.05, busy=0.002, pools=3)

# A released pool with expandable segments is given up by PyTorch while blocks of it exist, and it crashes.
SPECIAL_POOLS = Profile(
    capacity=512 * MIB, streams=2, record_stream=0.05, busy=0.002, pools=3, pool_options=(0, 1, 2, 3)
)

# Every option that changes memory, alone and with those it works together with. Not together: expandable
# segments and max_split_size before 2.5, which end in an assertion of PyTorch's own (issue 119452).
OPTIONS: tuple[tuple[str, tuple[int, int]], ...] = (
    ("", (2, 0)),
    ("max_split_size_mb:64", (2, 0)),
    ("max_split_size_mb:21", (2, 0)),
    ("roundup_power2_divisions:4", (2, 0)),
    ("roundup_power2_divisions:1", (2, 0)),
    ("roundup_power2_divisions:[1:2,4:8,16:4,>:1]", (2, 0)),
    ("garbage_collection_threshold:0.6", (2, 0)),
    ("expandable_segments:True", (2, 1)),
    ("expandable_segments:True,garbage_collection_threshold:0.5", (2, 1)),
    ("expandable_segments:True,max_split_size_mb:64", (2, 5)),
    ("max_split_size_mb:25,max_non_split_rounding_mb:40", (2, 6)),
    ("per_process_memory_fraction:0.6", (2, 10)),
    ("garbage_collection_threshold:0.4,per_process_memory_fraction:0.8", (2, 10)),
    ("large_segment_size_mb:32", (2, 11)),
    ("large_segment_size_mb:13,expandable_segments:True", (2, 11)),
    ("per_process_memory_fraction:0.6,throw_on_cudamalloc_oom:True", (2, 12)),
    ("throw_on_cudamalloc_oom:True,expandable_segments:True,max_split_size_mb:40", (2, 12)),
)

# Settings that may follow each other while blocks exist. Lowering max_split_size or changing the size of
# large segments then is an error of PyTorch's own: it gives back parts of segments.
CHANGES = (
    "garbage_collection_threshold:0.6",
    "expandable_segments:True",
    "roundup_power2_divisions:4",
    "expandable_segments:False",
)

CASES: tuple[Case, ...] = (
    *(Case(text, profile, since) for text, since in OPTIONS for profile in (PLAIN, SHARED, CROWDED)),
    Case(
        "",
        Profile(capacity=1024 * MIB, streams=2, fraction=0.0005, settings=len(CHANGES) + 1),
        (2, 5),
        CHANGES,
    ),
    Case("", POOLS, (2, 11)),
    Case("expandable_segments:True", replace(POOLS, release_pools=False), (2, 11)),
    Case("max_split_size_mb:64", POOLS, (2, 11)),
    Case("", SPECIAL_POOLS, (2, 11)),
    Case("expandable_segments:True", replace(SPECIAL_POOLS, release_pools=False), (2, 11)),
)


# With cards in MiB: one that is large, one that is a little too small, so that the cache is released again
# and again, one that is far too small.
PROGRAMS: tuple[tuple[tuple[str, ...], tuple[int, ...]], ...] = (
    (("gpt2.py", "--precision", "bf16"), (24000, 7320, 5000)),
    (("vision.py", "--model", "resnet50", "--optimizer", "adamw"), (24000, 3000, 2000)),
    (("mlp.py",), (24000, 200, 150)),
)
RECORDED: tuple[Case, ...] = tuple(
    Case(text, Profile(capacity=capacity * MIB), program=program)
    for program, capacities in PROGRAMS
    for text in ("", "expandable_segments:True", "max_split_size_mb:64", "roundup_power2_divisions:4")
    for capacity in capacities
)


def environment(build: Build, settings: str = "", **own: str) -> dict[str, str]:
    variables = os.environ | {"LD_PRELOAD": build.preload, "VRAMTRACE_SIM_GPU": "rtx4090"} | own
    for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"):
        variables.pop(name, None)
    return variables | ({"PYTORCH_CUDA_ALLOC_CONF": settings} if settings else {})


def interpreter() -> str:
    """VRAMTRACE_ALLOCATOR_PYTHON: the interpreter whose PyTorch is compared, where it is not this one."""
    return os.environ.get("VRAMTRACE_ALLOCATOR_PYTHON", sys.executable)


def run(command: list[str], variables: dict[str, str]) -> None:
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: status {done.returncode}\n{done.stderr[-2000:]}")


def recorded_stream(build: Build, program: tuple[str, ...], folder: Path) -> Stream:
    """What a program of tests/training asks for on a card of 80 GB; kept in `folder` for the next case."""
    path = folder / f"{'_'.join(program)}.stream"
    if not path.is_file():
        script = str(ROOT / "tests" / "training" / program[0])
        command = [interpreter(), str(FOLDER / "record_stream.py"), str(path), script, *program[1:]]
        run(command, environment(build, VRAMTRACE_SIM_GPU="h100"))
    return Stream.read(path)


def run_real(build: Build, stream: Stream, case: Case, folder: Path) -> None:
    """Leaves the stream, its settings and what the real allocator answered in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    stream.write(folder / "stream.bin")
    (folder / "settings.txt").write_text("".join(f"{text}\n" for text in (case.settings, *case.later)))
    variables = environment(
        build,
        case.settings,
        VRAMTRACE_SIM_TOTAL=f"{case.profile.capacity // MIB}MiB",
        VRAMTRACE_SIM_CONTEXT="0",
    )
    run([interpreter(), str(FOLDER / "real_allocator.py"), str(folder), str(build.busy_streams)], variables)


def run_model(build: Build, folder: Path) -> Result:
    """Compares the model with what is in `folder`."""
    device = json.loads((folder / "device.json").read_text())
    command = [str(build.compare), device["version"], str(device["total"]), str(device["used_elsewhere"])]
    command += [str(folder / "settings.txt"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr)
    answer = json.loads(done.stdout)
    fields = ("operations", "differences", "ooms", "retries", "first")
    return Result(device["version"], **{field: answer[field] for field in fields})


def compare(build: Build, case: Case, operations: int, seed: int, folder: Path) -> Result:
    if case.program:
        stream = recorded_stream(build, case.program, folder)
    else:
        stream = random_stream(seed, operations, case.profile)
    run_real(build, stream, case, folder)
    return run_model(build, folder)
