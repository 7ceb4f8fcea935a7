#!/usr/bin/env python3
"""Checks and regenerates the export lists of the simulated libraries.

    exports.py MANIFESTS check  SITE_PACKAGES...   names that wheels import and no list has: exit 1
    exports.py MANIFESTS needed SITE_PACKAGES...   libraries that wheels need and nothing replaces: exit 1
    exports.py MANIFESTS update SITE_PACKAGES...   add what wheels import and the public headers declare

MANIFESTS is the folder of manifests that a build leaves (lib/vramtrace/simulator-manifests).
Only files on this machine are read. `update` needs clang for the headers' return types.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator

import elf
import export_list

#: Sonames of NVIDIA's libraries, the ones a wheel without a GPU machine must find replaced.
NVIDIA_SONAME = re.compile(
    r"lib(cuda|cudart|cublas|cublasLt|cudnn\w*|nccl|nvidia-ml|cupti|cusolver\w*|cusparse|cusparseLt|cufft\w*|curand|"
    r"cufile\w*|nvrtc|nvshmem_host|nvJitLink|nvToolsExt|nvjpeg|npp\w+|nvfatbin)\.so(\.\d+)*"
)
#: Files inside wheels that are NVIDIA's own: they are what we replace, not what we serve.
NVIDIA_OWN = re.compile(r"/nvidia/|/nvshmem/|cupti|libcudart|libnvjpeg|nvperf|/backends/amd/|rocm|xpu")
#: One line of clang's syntax tree; functions with a body in the header are not the library's.
FUNCTION = re.compile(
    r"FunctionDecl 0x\w+ (?:prev 0x\w+ )?<.*?> (?:\S+ )?(?:implicit )?(?:used )?"
    r"(\w+) '([^']*)'(?!.*\b(?:static|inline)\b)"
)
STATUS_TYPE = re.compile(
    r"(Status|status|Result|result|Error|error)(_t|_enum|_st)?$|^CUresult$|^CUptiResult$|^cudaError"
)


@dataclasses.dataclass(frozen=True)
class Simulated:
    """One replaced library, as its manifest describes it."""

    soname: str
    node: str
    exports: tuple[pathlib.Path, ...]
    names: frozenset[str]
    headers: tuple[str, ...]
    include: tuple[str, ...]
    prefix: re.Pattern[str]


def simulated_libraries(manifests: pathlib.Path) -> list[Simulated]:
    found = []
    for path in sorted(manifests.glob("*.json")):
        row = json.loads(path.read_text())
        paths = tuple(pathlib.Path(name) for name in row["exports"])
        names = frozenset(name for listed in paths for name in export_list.read(listed))
        prefix = re.compile(row["prefix"] or r"(?!)")
        headers = tuple(name for name in row["headers"] if name)
        found.append(
            Simulated(
                row["soname"], row["node"], paths, names, headers, tuple(row["include"].split(":")), prefix
            )
        )
    return found


def is_nvidias_own(path: pathlib.PurePath) -> bool:
    """Whether a file, by its path inside site-packages, is a library that we replace."""
    return NVIDIA_OWN.search("/" + path.as_posix()) is not None


def wheel_libraries(folders: Iterable[str]) -> Iterator[elf.Library]:
    """Shared libraries under the folders that are users of NVIDIA's libraries, not NVIDIA's own."""
    for folder in folders:
        for path in sorted(pathlib.Path(folder).rglob("*.so*")):
            if path.is_symlink() or not path.is_file() or is_nvidias_own(path.relative_to(folder)):
                continue
            try:
                yield elf.read(path)
            except elf.NotElf:
                continue


def wanted_from(library: elf.Library, simulated: Simulated) -> set[str]:
    """Names `library` would take from `simulated`: by version, else by name where it needs that soname.

    Weak imports do not count: they are how a program asks whether something is there (PyTorch asks for
    nvshmem_init so), and a stand-in that cannot do it should be absent.
    """
    wanted = set()
    for symbol in library.imports():
        if symbol.weak:
            continue
        by_version = (
            simulated.node and symbol.version == simulated.node and symbol.library == simulated.soname
        )
        by_name = (
            not symbol.version and simulated.soname in library.needed and simulated.prefix.match(symbol.name)
        )
        if by_version or by_name:
            wanted.add(symbol.name)
    return wanted


def imports(libraries: list[Simulated], folders: list[str]) -> dict[str, dict[str, set[str]]]:
    """soname -> name -> files that import it."""
    found: dict[str, dict[str, set[str]]] = {row.soname: collections.defaultdict(set) for row in libraries}
    for library in wheel_libraries(folders):
        for row in libraries:
            for name in wanted_from(library, row):
                found[row.soname][name].add(library.path.name)
    return found


def check(libraries: list[Simulated], folders: list[str]) -> int:
    missing = 0
    wanted = imports(libraries, folders)
    for row in libraries:
        for name, files in sorted(wanted[row.soname].items()):
            if name not in row.names:
                missing += 1
                users = ", ".join(sorted(files))
                print(f"{row.soname}: {name} is imported by {users} but not in {row.exports[0]}")
    total = sum(len(names) for names in wanted.values())
    used = sum(bool(names) for names in wanted.values())
    print(f"{total} names imported from {used} libraries, {missing} missing")
    return 1 if missing or not total else 0


def needed(libraries: list[Simulated], folders: list[str]) -> int:
    served = {row.soname for row in libraries}
    stems = {soname.split(".so")[0] for soname in served}
    absent: dict[str, set[str]] = collections.defaultdict(set)
    seen = set()
    for library in wheel_libraries(folders):
        for soname in filter(NVIDIA_SONAME.fullmatch, library.needed):
            seen.add(soname)
            if soname not in served:
                absent[soname].add(library.path.name)
    # A wheel may carry one file for each CUDA major (bitsandbytes does); it loads the one of its PyTorch.
    others = {soname for soname in absent if soname.split(".so")[0] in stems}
    for soname, files in sorted(absent.items()):
        what = "another CUDA major" if soname in others else "nothing replaces it"
        print(f"{soname} is needed by {', '.join(sorted(files))}: {what}")
    absent = {soname: files for soname, files in absent.items() if soname not in others}
    print(f"{len(seen)} libraries needed, {len(absent)} not replaced")
    return 1 if absent or not seen else 0


def kind_of(return_type: str) -> str:
    if return_type == "void":
        return "void"
    if return_type.endswith("*"):
        return "null"
    if STATUS_TYPE.search(return_type):
        return "status"
    return "zero"


def declared(row: Simulated) -> dict[str, str]:
    """Functions that the library's public headers declare, with the kind their return type asks for."""
    found: dict[str, str] = {}
    includes = [word for folder in row.include if folder for word in ("-isystem", folder)]
    clang = os.environ.get("CLANG", "clang++-14")
    for header in row.headers:
        command = [clang, "-x", "c++", "-std=c++17", *includes, "-include", "cstddef", "-include", header]
        command += ["-fsyntax-only", "-Xclang", "-ast-dump", "-fno-color-diagnostics", "-"]
        result = subprocess.run(command, input="", capture_output=True, text=True)
        if result.returncode:
            raise SystemExit(f"{row.soname}: {header} does not compile:\n{result.stderr[-2000:]}")
        for match in FUNCTION.finditer(result.stdout):
            name, kind = match.group(1), match.group(2)
            if row.prefix.match(name):
                found[name] = kind_of(kind.split("(")[0].strip())
    return found


def update(libraries: list[Simulated], folders: list[str]) -> int:
    wanted = imports(libraries, folders)
    for row in libraries:
        if len(row.exports) != 1:
            print(f"{row.soname}: has {len(row.exports)} lists; update the first by hand")
        names = dict(export_list.read(row.exports[0]))
        before = set(names)
        for name, kind in declared(row).items():
            names.setdefault(name, kind)
        for name in wanted[row.soname]:
            names.setdefault(name, "status")
        export_list.write(row.exports[0], names)
        print(f"{row.soname}: {len(names)} names, {len(set(names) - before)} new")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("manifests", type=pathlib.Path)
    parser.add_argument("command", choices=("check", "needed", "update"))
    parser.add_argument("folders", nargs="+", help="site-packages folders")
    parser.add_argument("--only", help="one soname")
    arguments = parser.parse_args()
    libraries = simulated_libraries(arguments.manifests)
    if not libraries:
        print(f"{arguments.manifests}: no manifests; build the simulator first", file=sys.stderr)
        return 2
    if arguments.only:
        libraries = [row for row in libraries if row.soname == arguments.only]
    return {"check": check, "needed": needed, "update": update}[arguments.command](
        libraries, arguments.folders
    )


if __name__ == "__main__":
    sys.exit(main())
