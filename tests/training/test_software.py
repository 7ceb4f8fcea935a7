"""Every program of the software list runs to its end. One whose package is not installed is skipped by name:
script/requirements-accuracy.txt has them all."""

from __future__ import annotations

import importlib.util
import os
import socket
from pathlib import Path

import pytest
from recording import FOLDER, Build, run_python
from software import PROGRAMS, Program

GPU = "a100-80"
# What takes minutes on a busy machine, or needs packages that script/bootstrap does not install.
QUICK = ("generate", "ddp-ranks-2", "fsdp-2-ranks-2")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        return listener.getsockname()[1]


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_software(build: Build, tmp_path: Path, program: Program) -> None:
    missing = [name for name in program.packages if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (script/requirements-accuracy.txt)")
    if str(program) not in QUICK and not os.environ.get("VRAMTRACE_ALL_SOFTWARE"):
        pytest.skip("runs in script/accuracy (VRAMTRACE_ALL_SOFTWARE=1)")
    command: list[str | Path] = [FOLDER / "software" / f"{program.script}.py", *program.arguments]
    environment = {"VRAMTRACE_SIM_COUNT": str(program.ranks), **program.environment}
    environment["TRITON_LIBCUDA_PATH"] = str(build.simulator)
    if program.ranks > 1:
        launcher = ["-m", "torch.distributed.run", "--nproc-per-node", str(program.ranks)]
        command = [*launcher, "--master-port", str(free_port()), *command]
    trace = tmp_path / ("run-%p.vtrace" if program.ranks > 1 else "run.vtrace")
    done = run_python(build, command, trace, GPU, **environment)
    assert done.status == 0, done.errors[-3000:]
    assert program.says in done.output, done.output[-2000:]
    assert list(tmp_path.glob("run*.vtrace")), "nothing was recorded"
