"""What `cmake --install` puts where, and that it works from there."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from script.checks.outcome import Outcome, failed, judge, passed
from script.checks.process import ROOT, run

SIMULATED_GPU = "rtx4090"
EXPECTED = ("bin/vramtrace", "lib/libvramtrace.so", "lib/vramtrace/simulator")


def install(prefix: Path) -> Outcome:
    command = ["cmake", "--install", str(ROOT / "build/release"), "--prefix", str(prefix)]
    status, tail = run("install", command)
    return passed("install/cmake") if status == 0 else failed("install/cmake", tail)


def layout(prefix: Path) -> Outcome:
    problems = [f"{name} is missing" for name in EXPECTED if not (prefix / name).exists()]
    simulator = prefix / "lib/vramtrace/simulator"
    named = [path.name for path in simulator.rglob("*") if "libcudart.so" in path.name]
    problems += [f"{name}: PyTorch looks for this name and opens the real libraries then" for name in named]
    return judge("install/layout", problems)


def needs_libc_only(prefix: Path) -> Outcome:
    """A conda environment's own libstdc++ must not matter to what is preloaded."""
    allowed = {
        "libc.so.6",
        "libm.so.6",
        "libdl.so.2",
        "libpthread.so.0",
        "librt.so.1",
        "ld-linux-x86-64.so.2",
    }
    own = {path.name for path in (prefix / "lib").rglob("*.so*")}
    problems = []
    for path in sorted((prefix / "lib").rglob("*.so*")):
        text = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=False).stdout
        needed = {line.split("[")[1].rstrip("]") for line in text.splitlines() if "(NEEDED)" in line}
        sonames = {line.split("[")[1].rstrip("]") for line in text.splitlines() if "(SONAME)" in line}
        own |= sonames
        problems += [f"{path.name} needs {name}" for name in sorted(needed - allowed) if name not in own]
    return judge("install/needs-libc-only", problems)


def dry_run(prefix: Path, folder: Path) -> list[Outcome]:
    """The main job, small, from the installed files and a folder that has nothing to do with the build."""
    vramtrace = prefix / "bin/vramtrace"
    script = ROOT / "tests/training/mlp.py"
    command = [str(vramtrace), "dry-run", "--gpu", SIMULATED_GPU, "--"]
    command += [str(ROOT / ".venv/bin/python"), str(script), "--steps", "2", "--hidden", "256"]
    status, tail = run("install-dry-run", command, folder=folder)
    outcomes = [passed("install/dry-run") if status == 0 else failed("install/dry-run", tail)]
    status, tail = run("install-analyze", [str(vramtrace), "analyze"], folder=folder)
    good = status == 0 and "weight" in tail.lower()
    outcomes.append(passed("install/analyze") if good else failed("install/analyze", tail))
    return outcomes


def bare_preload(prefix: Path, folder: Path) -> Outcome:
    """A program without CUDA runs unchanged and leaves no file."""
    folder = folder / "bare"
    folder.mkdir()
    preload = {"LD_PRELOAD": str(prefix / "lib/libvramtrace.so")}
    status, tail = run("install-bare", ["/bin/sh", "-c", "ls; exit 7"], preload, folder=folder)
    lines = tail.splitlines()[1:]
    problems = [f"printed: {line}" for line in lines] + [f"left {path.name}" for path in folder.iterdir()]
    if status != 7:
        problems.append(f"exit status {status} instead of 7")
    return judge("install/bare-preload", problems)


def check_installation() -> list[Outcome]:
    with tempfile.TemporaryDirectory(prefix="vramtrace-install-") as name:
        prefix, folder = Path(name) / "prefix", Path(name) / "folder"
        folder.mkdir()
        outcome = install(prefix)
        if outcome.detail:
            return [outcome]
        outcomes = [outcome, layout(prefix), needs_libc_only(prefix), bare_preload(prefix, folder)]
        return outcomes + dry_run(prefix, folder)
