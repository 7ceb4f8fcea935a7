"""The table of CPython's offsets against CPython's own headers, for every version that is installed here."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from conftest import Build

SOURCE = r"""
#define Py_BUILD_CORE 1
#include <stddef.h>
#include <stdio.h>
#include <Python.h>
#include <frameobject.h>
#include <internal/pycore_pystate.h>
#if PY_VERSION_HEX >= 0x030b0000
#include <internal/pycore_frame.h>
#endif
#if PY_VERSION_HEX >= 0x030e0000
#include <internal/pycore_interpframe_structs.h>
#endif
#define AT(name, type, member) printf("\"" name "\":%d,", (int)offsetof(type, member))
int main(void) {
  printf("{");
#if PY_VERSION_HEX < 0x030b0000
  AT("thread_to_frame", PyThreadState, frame);
  AT("previous", PyFrameObject, f_back);
  AT("code", PyFrameObject, f_code);
  AT("instruction", PyFrameObject, f_lasti);
  AT("locals", PyFrameObject, f_localsplus);
  AT("code_qualified_name", PyCodeObject, co_name);
  printf("\"cframe_to_frame\":-1,\"owner\":-1,\"code_start\":0,");
#else
#if PY_VERSION_HEX < 0x030d0000
  AT("thread_to_frame", PyThreadState, cframe);
  AT("cframe_to_frame", _PyCFrame, current_frame);
  AT("code", _PyInterpreterFrame, f_code);
  AT("instruction", _PyInterpreterFrame, prev_instr);
#else
  AT("thread_to_frame", PyThreadState, current_frame);
  printf("\"cframe_to_frame\":-1,");
  AT("code", _PyInterpreterFrame, f_executable);
  AT("instruction", _PyInterpreterFrame, instr_ptr);
#endif
  AT("previous", _PyInterpreterFrame, previous);
  AT("locals", _PyInterpreterFrame, localsplus);
  AT("owner", _PyInterpreterFrame, owner);
  AT("code_start", PyCodeObject, co_code_adaptive);
  AT("code_qualified_name", PyCodeObject, co_qualname);
#endif
#if PY_VERSION_HEX < 0x030a0000
  AT("code_line_table", PyCodeObject, co_lnotab);
#else
  AT("code_line_table", PyCodeObject, co_linetable);
#endif
  AT("code_filename", PyCodeObject, co_filename);
  AT("code_name", PyCodeObject, co_name);
  AT("code_first_line", PyCodeObject, co_firstlineno);
  printf("\"string_ascii_data\":%d,\"string_compact_data\":%d,\"minor\":%d}\n", (int)sizeof(PyASCIIObject),
         (int)sizeof(PyCompactUnicodeObject), PY_MINOR_VERSION);
  return 0;
}
"""


def header_folders() -> dict[int, Path]:
    """Minor version -> folder with Python.h and internal/."""
    places = [Path(sysconfig.get_paths()["include"]), *Path("/usr/include").glob("python3.*")]
    places += Path.home().glob(".pyenv/versions/3.*/include/python3.*")
    found = {}
    for place in places:
        minor = place.name.removeprefix("python3.")
        if minor.isdigit() and int(minor) >= 9 and (place / "internal" / "pycore_pystate.h").is_file():
            found[int(minor)] = place
    return found


@pytest.mark.parametrize("minor", sorted(header_folders()) or [sys.version_info.minor])
def test_offsets_are_those_of_the_headers(build: Build, tmp_path: Path, minor: int) -> None:
    folder = header_folders().get(minor)
    if folder is None:
        pytest.skip("no CPython headers on this machine")
    source = tmp_path / "offsets.c"
    source.write_text(SOURCE)
    program = tmp_path / "offsets"
    subprocess.run(["gcc", "-w", f"-I{folder}", f"-I{folder}/internal", source, "-o", program], check=True)
    real = json.loads(subprocess.run([program], check=True, capture_output=True, text=True).stdout)
    rows = subprocess.run(
        [build.folder / "tests" / "preload" / "python_layouts"], check=True, capture_output=True, text=True
    ).stdout
    table = {row["minor"]: row for row in map(json.loads, rows.splitlines())}
    assert table[minor] == real
