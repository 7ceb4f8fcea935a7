"""Runs of the vramtrace command for test_cli_*.py, with programs that need no PyTorch."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

TIMEOUT_SECONDS = 240

# A program that allocates as many MiB as its first argument says, through whatever runtime is preloaded.
ALLOCATE = """
import ctypes, sys
cuda = ctypes.CDLL(None)
def allocate(mib):
    address = ctypes.c_void_p()
    return cuda.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(mib << 20))
result = allocate(int(sys.argv[1]))
print("cudaMalloc answered", result, flush=True)
"""


@dataclass
class Ended:
    status: int
    output: str
    errors: str
    folder: Path

    def traces(self) -> list[Path]:
        return sorted(self.folder.rglob("*.vtrace"))

    def own_lines(self) -> list[str]:
        return [line for line in self.errors.splitlines() if line.startswith("vramtrace: ")]


class Command:
    """bin/vramtrace of a build, run in a folder of the test."""

    def __init__(self, build: Path, folder: Path) -> None:
        self.program = build / "bin" / "vramtrace"
        self.folder = folder

    def environment(self, **extra: str) -> dict[str, str]:
        own = ("VRAMTRACE_", "LD_PRELOAD", "WANDB_", "CUDA_VISIBLE")
        return {k: v for k, v in os.environ.items() if not k.startswith(own)} | extra

    def __call__(self, *words: str | Path, stdin: str = "", **environment: str) -> Ended:
        done = subprocess.run(
            [self.program, *map(str, words)],
            cwd=self.folder,
            env=self.environment(**environment),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr, self.folder)

    def script(self, text: str, name: str = "program.py") -> list[str]:
        (self.folder / name).write_text(text)
        return [sys.executable, str(self.folder / name)]
