"""What releases import of NVIDIA's libraries: does anybody export it; the list that a quick test reads."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from recording import ROOT, Build

sys.path.insert(0, str(ROOT / "preload" / "simulator" / "stubs"))
import exports

#: Read by tests/preload/test_simulator_libraries.py: the names of every release that was looked at.
LIST = ROOT / "tests" / "preload" / "wheel_imports.txt"


def site_packages(python: Path) -> Path:
    script = "import sysconfig; print(sysconfig.get_path('purelib'))"
    done = subprocess.run([str(python), "-c", script], capture_output=True, text=True, check=True)
    return Path(done.stdout.strip())


def simulated(build: Build) -> list[exports.Simulated]:
    return exports.simulated_libraries(build.simulator.parent / "simulator-manifests")


def complete(build: Build, python: Path) -> bool:
    """Prints what is missing."""
    libraries, folders = simulated(build), [str(site_packages(python))]
    return exports.check(libraries, folders) + exports.needed(libraries, folders) == 0


def wanted(build: Build, python: Path) -> dict[str, set[str]]:
    """Soname to names, also of libraries that are needed and not called."""
    folder = str(site_packages(python))
    found: dict[str, set[str]] = defaultdict(set)
    for library in exports.wheel_libraries([folder]):
        for soname in filter(exports.NVIDIA_SONAME.fullmatch, library.needed):
            found[soname].update()
    for soname, names in exports.imports(simulated(build), [folder]).items():
        if names:
            found[soname].update(names)
    return found


def read_list() -> tuple[set[str], dict[str, set[str]]]:
    """Releases, and soname to names."""
    releases: set[str] = set()
    found: dict[str, set[str]] = defaultdict(set)
    soname = ""
    for line in LIST.read_text().splitlines() if LIST.is_file() else []:
        if line.startswith("# releases:"):
            releases.update(line.removeprefix("# releases:").split())
        elif line.startswith("["):
            soname = line.strip("[]")
            found[soname].update()
        elif line and not line.startswith("#"):
            found[soname].add(line)
    return releases, found


def add_to_list(build: Build, release: str, python: Path) -> None:
    releases, found = read_list()
    for soname, names in wanted(build, python).items():
        found[soname] |= names
    lines = [
        "# What the wheels of PyTorch and torchvision import of NVIDIA's libraries: soname, then names.",
        "# Written by script/accuracy releases with VRAMTRACE_UPDATE_IMPORTS=1.",
        "# releases: "
        + " ".join(sorted({*releases, release}, key=lambda text: [int(n) for n in text.split(".")])),
    ]
    for soname in sorted(found):
        lines += ["", f"[{soname}]", *sorted(found[soname])]
    LIST.write_text("\n".join(lines) + "\n")
