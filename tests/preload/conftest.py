"""Fixtures: the build under test, and programs run under it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
TIMEOUT_SECONDS = 240


@dataclass
class Frame:
    file: str
    name: str
    line: int
    module: int
    native: bool


@dataclass
class Packet:
    """One packet: `kind` is the name of its body, fields are read with get() and by attribute."""

    kind: str
    sequence: int
    address: int
    fields: dict[str, Any]
    texts: dict[str, str]
    stack: list[Frame] = field(default_factory=list)

    def get(self, name: str, default: Any = 0) -> Any:
        if name in self.texts:
            return self.texts[name]
        value = self.fields.get(name, default)
        return int(value) if isinstance(value, str) and value.isdigit() else value


@dataclass
class Trace:
    packets: list[Packet]

    def of(self, kind: str) -> list[Packet]:
        return [packet for packet in self.packets if packet.kind == kind]

    def features(self) -> dict[str, tuple[bool, str]]:
        """Name -> (on, reason); the newest packet holds."""
        return {
            p.get("name"): (bool(p.fields.get("on")), p.fields.get("reason", "")) for p in self.of("feature")
        }

    def labels(self, kind: str) -> list[Packet]:
        return [p for p in self.of("label") if p.fields.get("kind") == f"KIND_{kind}"]


@dataclass
class Ended:
    status: int
    output: str
    errors: str
    trace_path: Path
    reader: Path

    def trace(self) -> Trace:
        lines = subprocess.run(
            [self.reader, self.trace_path], check=True, capture_output=True, text=True
        ).stdout.splitlines()
        stacks = json.loads(lines[-1])["stacks"]
        return Trace([_packet(json.loads(line), stacks) for line in lines[:-1]])


def _packet(row: dict[str, Any], stacks: dict[str, list[list[Any]]]) -> Packet:
    body = row.pop("packet")
    kind = next(name for name in body if name not in ("sequence_delta", "time_delta_ns"))
    fields = body[kind]
    sequence, address = row.pop("sequence"), row.pop("address")
    row.pop("thread")
    frames = [Frame(*f[:4], native=bool(f[4])) for f in stacks.get(str(fields.get("stack", 0)), [])]
    return Packet(kind, sequence, address, fields, row, frames)


class Build:
    """The built files a test needs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.recorder = folder / "lib" / "libvramtrace.so"
        self.simulator = folder / "lib" / "vramtrace" / "simulator"
        self.fakes = folder / "tests" / "preload" / "fakes"
        self.reader = folder / "tests" / "preload" / "trace_json"

    def simulated(self, recorded: bool = True) -> str:
        names = (self.simulator / "preload.txt").read_text().split()
        own = [self.recorder] if recorded else []
        return ":".join(map(str, [*own, *(self.simulator / name for name in names)]))

    def faked(self) -> str:
        return ":".join(
            map(str, [self.recorder, self.fakes / "libcudart.so.13", self.fakes / "libcuda.so.1"])
        )

    def run(
        self,
        folder: Path,
        command: list[str | Path],
        preload: str | None = None,
        gpu: str = "rtx4090",
        **environment: str,
    ) -> Ended:
        trace = folder / "t.vtrace"
        own = {
            "LD_PRELOAD": self.simulated() if preload is None else preload,
            "VRAMTRACE_OUTPUT": str(trace),
            "VRAMTRACE_SIM_GPU": gpu,
        }
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("VRAMTRACE_")}
        done = subprocess.run(
            list(map(str, command)),
            env=inherited | own | environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr, trace, self.reader)

    def python(self, folder: Path, code: str, *arguments: str, **options: str) -> Ended:
        """Runs a script with the interpreter of the tests, which has PyTorch."""
        script = folder / "script.py"
        script.write_text(code)
        return self.run(folder, [sys.executable, script, *arguments], **options)


@pytest.fixture(scope="session")
def build() -> Iterator[Build]:
    folder = Path(os.environ.get("VRAMTRACE_BUILD", ROOT / "build" / "release")).resolve()
    made = Build(folder)
    for needed in (made.recorder, made.reader):
        if not needed.is_file():
            pytest.fail(f"{needed} is not built; set VRAMTRACE_BUILD to a build folder")
    return made
