"""The preload libraries load with an old glibc, whichever they were built with (preload/glibc/README.md)."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("VRAMTRACE_BUILD", ROOT / "build" / "release")).resolve()
sys.path.insert(0, str(ROOT / "preload" / "simulator" / "stubs"))
import elf  # noqa: E402

NEWEST_GLIBC = (2, 25)  # as preload/glibc/README.md says
ALLOWED_NEEDS = re.compile(
    r"(libc|libm|libdl|libpthread|ld-linux-x86-64|ld-linux-aarch64)\.so\.\d|libvramtrace_sim_core\.so"
)
LIBRARIES = [BUILD / "lib" / "libvramtrace.so", *sorted((BUILD / "lib/vramtrace/simulator").glob("*.so*"))]
each_library = pytest.mark.parametrize("library", LIBRARIES, ids=lambda path: path.name)


def newer_than(path: pathlib.Path, limit: tuple[int, ...]) -> list[str]:
    """Symbols that the library imports under a version of glibc above the limit."""
    found = []
    for symbol in elf.read(path).imports():
        match = re.fullmatch(r"GLIBC_([0-9.]+)", symbol.version)
        if match and tuple(map(int, match[1].split("."))) > limit:
            found.append(f"{symbol.name}@{symbol.version}")
    return found


def test_the_number_is_the_manuals() -> None:
    text = (ROOT / "preload/glibc/README.md").read_text()
    assert f"glibc {'.'.join(map(str, NEWEST_GLIBC))} and later" in text


@each_library
def test_asks_for_an_old_glibc(library: pathlib.Path) -> None:
    assert newer_than(library, NEWEST_GLIBC) == []


@each_library
def test_needs_libc_alone(library: pathlib.Path) -> None:
    assert [name for name in elf.read(library).needed if not ALLOWED_NEEDS.fullmatch(name)] == []


def test_a_newer_symbol_is_found(tmp_path: pathlib.Path) -> None:
    """The check can fail: the same functions without our lists of names ask for this machine's glibc."""
    source = tmp_path / "user.c"
    source.write_text("void *dlopen(const char *, int); void *use(void) { return dlopen(0, 1); }")
    library = tmp_path / "user.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    version = tuple(map(int, os.confstr("CS_GNU_LIBC_VERSION").split()[1].split(".")))
    assert bool(newer_than(library, NEWEST_GLIBC)) == (version >= (2, 34))


def test_what_stands_in_for_newer_functions_works() -> None:
    program = BUILD / "tests" / "preload" / "old_glibc"
    own = [name for name in newer_than(program, NEWEST_GLIBC) if "__libc_start_main" not in name]
    assert own == []
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
