"""Several sources in one, for clang-tidy: nine tenths of its time go into the headers, which the sources of a
bundle share. They are compiled by the same command and define nothing of the same name; those with a "using
namespace" share their bundle with their folder alone."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

MOST_SOURCES = 12  # of a bundle: few enough that two cores share the work well, and one change costs little

# What a formatted source defines outside functions stands at the left edge; one of these marks follows the
# name. Members (Class::Name) cannot clash, and "using" may be repeated.
DEFINED = re.compile(
    r"^(?!namespace\b|using\b|extern\b)[A-Za-z_][^\n(=;{\[]*?(?<!::)\b(\w+)\s*[(=;{\[]", re.MULTILINE
)
MACRO = re.compile(r"^#define (\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Source:
    path: Path
    command: str
    directory: str


@dataclass(frozen=True)
class Bundle:
    path: Path
    sources: tuple[Source, ...]

    @property
    def database(self) -> Path:
        return self.path.parent


def options_of(source: Source) -> str:
    """The compile command without what names the source and its object."""
    words = shlex.split(source.command)
    for option in ("-o", "-c"):
        if option in words:
            at = words.index(option)
            del words[at : at + 2]
    return shlex.join(word for word in words if Path(word) != source.path)


def names_of(source: Source) -> set[str]:
    text = source.path.read_text(errors="replace")
    return set(DEFINED.findall(text)) | set(MACRO.findall(text))


def write(path: Path, members: list[Source]) -> Bundle:
    path.parent.mkdir(parents=True)
    lines = [f'#include "{source.path}"  // NOLINT(bugprone-suspicious-include)\n' for source in members]
    path.write_text("".join(lines))
    command = f"{options_of(members[0])} -c {shlex.quote(str(path))}"
    entry = {"file": str(path), "command": command, "directory": members[0].directory}
    (path.parent / "compile_commands.json").write_text(json.dumps([entry]))
    return Bundle(path, tuple(members))


def halves(bundle: Bundle) -> list[Bundle]:
    middle = len(bundle.sources) // 2
    parts = (bundle.sources[:middle], bundle.sources[middle:])
    folder, stem = bundle.path.parents[1], bundle.path.stem
    return [write(folder / f"{stem}{x}" / f"{stem}{x}.cpp", list(part)) for x, part in zip("ab", parts)]


def make(stale: list[Source], folder: Path) -> list[Bundle]:
    """Bundles of all sources, the largest first."""
    shutil.rmtree(folder, ignore_errors=True)
    groups: dict[tuple[str, Path | None], list[tuple[list[Source], set[str]]]] = {}
    for source in stale:
        names = names_of(source)
        own_folder = source.path.parent if "\nusing namespace " in source.path.read_text() else None
        candidates = groups.setdefault((options_of(source), own_folder), [])
        for members, taken in candidates:
            if len(members) < MOST_SOURCES and not names & taken:
                members.append(source)
                taken.update(names)
                break
        else:
            candidates.append(([source], names))
    lists = sorted((members for group in groups.values() for members, _ in group), key=len, reverse=True)
    return [write(folder / str(i) / f"{i}.cpp", members) for i, members in enumerate(lists)]
