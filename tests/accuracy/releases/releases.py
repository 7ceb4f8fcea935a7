"""The PyTorch releases that are run, one row each, and their virtual environments."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
#: What is NVIDIA's, and what only torch.compile imports: the simulated device stands in for the former.
LEFT_OUT = re.compile(r"^(nvidia-|cuda-|triton\b)")


@dataclass(frozen=True)
class Release:
    """One PyTorch, with a torchvision and a transformers that work with it."""

    torch: str
    torchvision: str
    transformers: str
    #: What the published cases of the time need besides, and pins of what the three ask for.
    also: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"torch {self.torch}"


# NumPy 2 came after 2.2. The rest of what PyTorch needs is read from its own metadata.
OLD_NUMPY = ("numpy<2",)
RELEASES = (
    Release("2.1.2", "0.16.2", "4.40.2", OLD_NUMPY),
    Release("2.2.2", "0.17.2", "4.44.2", OLD_NUMPY),
    Release("2.3.1", "0.18.1", "4.44.2", OLD_NUMPY),
    Release("2.4.1", "0.19.1", "4.48.1", ("peft==0.14.0", "accelerate==1.3.0", "psutil")),
    Release("2.5.1", "0.20.1", "4.48.1"),
    Release("2.6.0", "0.21.0", "4.51.3"),
    Release("2.7.1", "0.22.1", "4.55.4"),
    Release("2.8.0", "0.23.0", "5.12.1", ("peft==0.21.2", "accelerate==1.15.0", "psutil")),
    Release("2.9.1", "0.24.1", "5.12.1"),
    Release("2.10.0", "0.25.0", "5.12.1"),
    Release("2.11.0", "0.26.0", "5.24.0"),
    Release("2.12.1", "0.27.1", "5.24.0"),
    Release("2.13.0", "0.28.0", "5.24.0"),
)


class NotInstallable(Exception):
    """pip could not install it here; the text is pip's last complaint."""


def environments() -> Path:
    """Where the virtual environments are made."""
    return Path(os.environ.get("VRAMTRACE_RELEASES", ROOT / "build" / "releases")).resolve()


def pip(python: Path, *arguments: str) -> None:
    command = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    done = subprocess.run(
        [*command, "--no-cache-dir", "--progress-bar", "off", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        complaints = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise NotInstallable(complaints[-1] if complaints else done.stderr[-500:])


def needs_of(python: Path, package: str) -> list[str]:
    """What an installed package asks for on this machine, without extras and without what is left out."""
    script = (
        "import json, sys; from importlib.metadata import requires; "
        "from pip._vendor.packaging.requirements import Requirement; "
        "rows = [Requirement(r) for r in requires(sys.argv[1]) or []]; "
        "print(json.dumps([r.name + str(r.specifier) for r in rows "
        "if r.marker is None or r.marker.evaluate({'extra': ''})]))"
    )
    done = subprocess.run([str(python), "-c", script, package], capture_output=True, text=True, check=True)
    return [need for need in json.loads(done.stdout) if not LEFT_OUT.match(need)]


def install(release: Release) -> Path:
    """The Python of the release's environment, made when it is not there; raises NotInstallable."""
    folder = environments() / f"torch-{release.torch}"
    python, stamp = folder / "bin" / "python", folder / "installed"
    wanted = repr(release)
    if stamp.is_file() and stamp.read_text() == wanted:
        return python
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, capture_output=True)
    try:
        # No NVIDIA wheel: --no-deps, and then what the two ask for otherwise.
        pip(
            python,
            "--no-deps",
            f"torch=={release.torch}",
            f"torchvision=={release.torchvision}",
        )
        plain = [*needs_of(python, "torch"), "numpy", "pillow"]
        pip(python, f"transformers=={release.transformers}", *plain)
        if release.also:
            pip(python, "--no-deps", *release.also)
    except NotInstallable:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    stamp.write_text(wanted)
    return python


def other_transformers(release: Release, python: Path, version: str) -> Path:
    """A folder for PYTHONPATH with another transformers, and what it asks for, than the release's."""
    folder = environments() / f"torch-{release.torch}" / f"transformers-{version}"
    if not folder.is_dir():
        made = folder.with_suffix(".part")
        shutil.rmtree(made, ignore_errors=True)
        pip(python, "--target", str(made), f"transformers=={version}")
        made.rename(folder)
    return folder


def remove(release: Release) -> None:
    shutil.rmtree(environments() / f"torch-{release.torch}", ignore_errors=True)
