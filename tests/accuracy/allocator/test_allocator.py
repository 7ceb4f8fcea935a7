"""A small member of the comparison of `script/accuracy allocator`, and proof that it can fail."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from cases import CASES, Build, Case, NotBuilt, default_build, run_model, run_real
from stream import FIELDS, Kind, Profile, Stream, random_stream

OPERATIONS = 4000
# With a seed whose stream meets the end of the card several times.
CHOSEN = {
    "default, 1024 MiB, 2 streams, 3 pools": 1,
    "max_split_size_mb:64, 1024 MiB, 2 streams": 1,
    "expandable_segments:True, 4096 MiB, 3 streams": 3,
    "garbage_collection_threshold:0.6, 1024 MiB, 2 streams": 1,
}


@pytest.fixture(scope="session")
def build() -> Build:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    try:
        return default_build()
    except NotBuilt as missing:
        pytest.skip(f"no simulated device to run PyTorch on: {missing}")


@pytest.fixture(scope="session")
def small(build: Build, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the real allocator to be tampered with."""
    folder = tmp_path_factory.mktemp("small")
    case = Case("", Profile(capacity=256 << 20, streams=2))
    run_real(build, random_stream(1, 400, case.profile), case, folder)
    return folder


def test_the_chosen_cases_exist() -> None:
    assert set(CHOSEN) <= {str(case) for case in CASES}


@pytest.mark.parametrize("name", CHOSEN)
def test_model_answers_as_the_real_allocator(name: str, build: Build, tmp_path: Path) -> None:
    case = next(case for case in CASES if str(case) == name)
    run_real(build, random_stream(CHOSEN[name], OPERATIONS, case.profile), case, tmp_path)
    result = run_model(build, tmp_path)
    assert result.first == ""
    assert result.differences == 0
    assert result.operations >= OPERATIONS
    assert result.ooms > 0, "the stream never met the end of the card"


def test_a_size_off_by_one_block_is_found(build: Build, small: Path) -> None:
    stream = Stream.read(small / "stream.bin")
    index = next(i for i in range(0, len(stream.words), FIELDS) if stream.words[i] == Kind.ALLOCATE)
    changed = Stream(stream.words[:])
    changed.words[index + 2] += 512
    changed.write(small / "stream.bin")
    try:
        result = run_model(build, small)
    finally:
        stream.write(small / "stream.bin")
    assert result.differences > 0
    assert result.first.startswith(f"operation {index // FIELDS}: ")


def test_an_address_that_moved_is_found(build: Build, small: Path) -> None:
    path = small / "observations.bin"
    original = path.read_bytes()
    width = len(original) // len(Stream.read(small / "stream.bin"))
    changed = bytearray(original)
    for start in range(0, len(changed), width):
        address = int.from_bytes(changed[start : start + 8], "little")
        if address % (2 << 20):  # not the start of a segment, which the model is told
            changed[start : start + 8] = (address + 512).to_bytes(8, "little")
            break
    path.write_bytes(changed)
    try:
        result = run_model(build, small)
    finally:
        path.write_bytes(original)
    assert result.differences > 0
    assert "address" in result.first
