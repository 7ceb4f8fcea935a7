"""Reads what the dynamic linker reads of a shared library: needs, soname, versions, symbols.

Only 64-bit little-endian ELF files, the ones CUDA wheels for Linux hold. Section headers are not used:
some wheels are stripped of them, and the dynamic segment is what decides at run time.
"""

from __future__ import annotations

import dataclasses
import mmap
import pathlib
import struct

PT_LOAD, PT_DYNAMIC = 1, 2
DT_NEEDED, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_SONAME, DT_GNU_HASH = 1, 4, 5, 6, 14, 0x6FFFFEF5
DT_VERSYM, DT_VERDEF, DT_VERDEFNUM = 0x6FFFFFF0, 0x6FFFFFFC, 0x6FFFFFFD
DT_VERNEED, DT_VERNEEDNUM = 0x6FFFFFFE, 0x6FFFFFFF
STB_LOCAL, STB_WEAK = 0, 2
VERSION_HIDDEN = 0x8000


class NotElf(Exception):
    """The file is not a 64-bit little-endian ELF file with a dynamic segment."""


@dataclasses.dataclass(frozen=True)
class Symbol:
    """One entry of the dynamic symbol table."""

    name: str
    defined: bool
    weak: bool
    #: Version node ("libcublas.so.13"), empty where the symbol has none.
    version: str
    #: The library a needed version is expected in; empty for definitions and unversioned imports.
    library: str = ""


@dataclasses.dataclass
class Library:
    """The dynamic section of one file."""

    path: pathlib.Path
    soname: str
    needed: list[str]
    symbols: list[Symbol]

    def imports(self) -> list[Symbol]:
        return [symbol for symbol in self.symbols if not symbol.defined]

    def exports(self) -> list[Symbol]:
        return [symbol for symbol in self.symbols if symbol.defined]


class _Image:
    """A mapped file, addressed by the virtual addresses of its load segments."""

    def __init__(self, data: mmap.mmap) -> None:
        if data[:6] != b"\x7fELF\x02\x01":
            raise NotElf
        self.data = data
        offset, count = self.unpack("<Q", 32)[0], self.unpack("<H", 56)[0]
        self.loads: list[tuple[int, int, int]] = []
        self.dynamic: dict[int, int] = {}
        self.needed: list[int] = []
        dynamic_offset = None
        for index in range(count):
            kind, _, file_offset, address, _, size = self.unpack("<IIQQQQ", offset + 56 * index)
            if kind == PT_LOAD:
                self.loads.append((address, file_offset, size))
            elif kind == PT_DYNAMIC:
                dynamic_offset = file_offset
        if dynamic_offset is None:
            raise NotElf
        while True:
            tag, value = self.unpack("<QQ", dynamic_offset)
            if tag == 0:
                break
            if tag == DT_NEEDED:
                self.needed.append(value)
            self.dynamic[tag] = value
            dynamic_offset += 16

    def unpack(self, layout: str, offset: int) -> tuple[int, ...]:
        return struct.unpack_from(layout, self.data, offset)

    def at(self, address: int) -> int:
        for start, offset, size in self.loads:
            if start <= address < start + size:
                return address - start + offset
        raise NotElf

    def string(self, index: int) -> str:
        start = self.at(self.dynamic[DT_STRTAB]) + index
        return self.data[start : self.data.find(b"\0", start)].decode()

    def symbol_count(self) -> int:
        if DT_HASH in self.dynamic:
            return self.unpack("<II", self.at(self.dynamic[DT_HASH]))[1]
        table = self.at(self.dynamic[DT_GNU_HASH])
        buckets, first, bloom = self.unpack("<III", table)
        bucket_start = table + 16 + 8 * bloom
        chain_start = bucket_start + 4 * buckets
        last = max(self.unpack(f"<{buckets}I", bucket_start), default=0)
        if last < first:
            return first
        while not self.unpack("<I", chain_start + 4 * (last - first))[0] & 1:
            last += 1
        return last + 1

    def versions(self) -> dict[int, tuple[str, str]]:
        """Version index to (node, library it is needed from)."""
        found: dict[int, tuple[str, str]] = {}
        if DT_VERDEF in self.dynamic:
            entry = self.at(self.dynamic[DT_VERDEF])
            for _ in range(self.dynamic[DT_VERDEFNUM]):
                _, flags, index, _, _, aux, following = self.unpack("<HHHHIII", entry)
                if not flags & 1:  # VER_FLG_BASE names the file itself
                    found[index] = (self.string(self.unpack("<I", entry + aux)[0]), "")
                entry += following
        if DT_VERNEED in self.dynamic:
            entry = self.at(self.dynamic[DT_VERNEED])
            for _ in range(self.dynamic[DT_VERNEEDNUM]):
                _, count, file, aux, following = self.unpack("<HHIII", entry)
                detail = entry + aux
                for _ in range(count):
                    _, _, index, name, step = self.unpack("<IHHII", detail)
                    found[index & ~VERSION_HIDDEN] = (self.string(name), self.string(file))
                    detail += step
                entry += following
        return found

    def symbols(self) -> list[Symbol]:
        if DT_SYMTAB not in self.dynamic:
            return []
        table, versions = self.at(self.dynamic[DT_SYMTAB]), self.versions()
        versym = self.at(self.dynamic[DT_VERSYM]) if DT_VERSYM in self.dynamic else None
        found = []
        for index in range(1, self.symbol_count()):
            name, info, _, section = self.unpack("<IBBH", table + 24 * index)
            if info >> 4 == STB_LOCAL:
                continue
            node, library = "", ""
            if versym is not None:
                version = self.unpack("<H", versym + 2 * index)[0] & ~VERSION_HIDDEN
                node, library = versions.get(version, ("", ""))
            found.append(Symbol(self.string(name), section != 0, info >> 4 == STB_WEAK, node, library))
        return found


def read(path: str | pathlib.Path) -> Library:
    """Reads one shared library; raises NotElf for anything else."""
    path = pathlib.Path(path)
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            image = _Image(data)
            soname = image.string(image.dynamic[DT_SONAME]) if DT_SONAME in image.dynamic else ""
            needed = [image.string(index) for index in image.needed]
            return Library(path, soname, needed, image.symbols())
    except (ValueError, struct.error) as error:  # an empty or cut file
        raise NotElf from error
