"""Python frames of a recorded event against what the interpreter says, for every CPython that is installed
here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Build

SCRIPT = r"""
import ctypes, json, sys, threading

runtime = ctypes.CDLL(None)  # the fake CUDA runtime, behind the recorder
expected = {}


def allocate(size):
    pointer = ctypes.c_void_p()
    frames = []
    frame = sys._getframe(0)
    while frame is not None:
        code = frame.f_code
        frames.append([code.co_filename, getattr(code, "co_qualname", code.co_name), frame.f_lineno])
        frame = frame.f_back
    expected[size] = frames
    expected[size][0][2] += 4  # the call below
    assert runtime.cudaMalloc(ctypes.byref(pointer), size) == 0


def recurse(depth, size):
    if depth == 0:
        allocate(size)
    else:
        recurse(depth - 1, size)


class Thing:
    def method(self, size):
        (lambda: allocate(size))()

    def __del__(self):
        allocate(7 * 4096)


def generator(size):
    yield 1
    allocate(size)
    yield 2


async def coroutine(size):
    allocate(size)


def naïve_größe_名前(size):
    allocate(size)


allocate(1 * 4096)
recurse(40, 2 * 4096)
Thing().method(3 * 4096)
for _ in generator(4 * 4096):
    pass
try:
    coroutine(5 * 4096).send(None)
except StopIteration:
    pass
thread = threading.Thread(target=allocate, args=(6 * 4096,))
thread.start()
thread.join()
naïve_größe_名前(8 * 4096)
[allocate(9 * 4096) for _ in range(1)]
exec(compile("allocate(10 * 4096)", "<generated>", "exec"))
max([1], key=lambda x: allocate(11 * 4096) or x)
json.dump(expected, open("expected.json", "w"))
"""


def interpreters() -> dict[str, Path]:
    """Those of this machine; more of them, or others' wrappers, by VRAMTRACE_TEST_INTERPRETERS=path:path."""
    named = filter(None, os.environ.get("VRAMTRACE_TEST_INTERPRETERS", "").split(":"))
    places = [*map(Path, named), Path(sys.executable), *Path("/usr/bin").glob("python3.[0-9]*")]
    places += Path.home().glob(".pyenv/versions/3.*/bin/python3")
    found: dict[str, Path] = {}
    for place in places:
        if not place.exists() or place.name.endswith("-config"):
            continue
        text = subprocess.run([place, "--version"], capture_output=True, text=True, check=False).stdout
        minor = text.split(".")[1] if text.startswith("Python 3.") else ""
        if minor.isdigit() and int(minor) >= 8:
            found.setdefault(f"3.{minor}", place)
    return found


@pytest.mark.parametrize("version", sorted(interpreters(), key=lambda v: int(v[2:])))
def test_frames_are_the_interpreters_own(build: Build, tmp_path: Path, version: str) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    ended = build.run(tmp_path, [interpreters()[version], "script.py"], preload=build.faked())
    assert ended.status == 0, ended.errors
    assert ended.errors == ""
    trace = ended.trace()
    on, reason = trace.features()["python_frames"]
    expected = json.loads((tmp_path / "expected.json").read_text())
    recorded = {str(p.get("bytes")): p for p in trace.of("driver_allocate")}
    assert recorded.keys() == expected.keys()
    if version == "3.8":
        assert not on
        assert "unknown Python version 3.8" in reason
        assert all(not frame.file for p in recorded.values() for frame in p.stack if not frame.native)
        return
    assert on, reason
    for size, frames in expected.items():
        walked = [[f.file, f.name, f.line] for f in recorded[size].stack if not f.native]
        assert walked == frames


@pytest.mark.parametrize(
    ("variable", "why"), [("VRAMTRACE_OFF", "VRAMTRACE_OFF"), ("VRAMTRACE_BREAK", "frame 0")]
)
def test_frames_can_be_off(build: Build, tmp_path: Path, variable: str, why: str) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    ended = build.run(
        tmp_path, [sys.executable, "script.py"], preload=build.faked(), **{variable: "python_frames"}
    )
    assert ended.status == 0, ended.errors
    trace = ended.trace()
    on, reason = trace.features()["python_frames"]
    assert not on
    assert why in reason
    assert all(frame.native for p in trace.of("driver_allocate") for frame in p.stack)


def test_a_program_without_cuda_leaves_no_file(build: Build, tmp_path: Path) -> None:
    for command in (
        ["/bin/true"],
        ["/bin/ls", "/"],
        [sys.executable, "-c", "import json, threading; print(1)"],
    ):
        ended = build.run(tmp_path, command, preload=str(build.recorder))
        plain = subprocess.run(command, capture_output=True, text=True, check=True)
        assert (ended.status, ended.output, ended.errors) == (0, plain.stdout, plain.stderr)
    assert list(tmp_path.iterdir()) == []
