"""The export lists: `name` or `name kind`, one a line, sorted by name, `#` begins a comment.

The kind says what a stub answers when nobody has written the function by hand:

    status   the library's not-supported status (the default, not written)
    library  the same status, but one line for the whole library: for libraries that are absent as a whole
    void     nothing: the function returns nothing
    null     a null pointer
    zero     0: the function returns a size or a count, not a status
    kernel   success, and nothing is done: the function only launches work on the handle it gets first, and
             all its results are device memory. Never for a function that writes host memory or returns a
             handle; those are written by hand
    hand     no stub is generated: somebody must write the function by hand
"""

from __future__ import annotations

import pathlib

KINDS = ("status", "library", "void", "null", "zero", "kernel", "hand")


class ListError(Exception):
    """A malformed export list; the text names file and line."""


def read(path: str | pathlib.Path) -> dict[str, str]:
    """Name to kind, in the file's order."""
    path = pathlib.Path(path)
    names: dict[str, str] = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        name, kind = words[0], words[1] if len(words) > 1 else "status"
        if kind not in KINDS or len(words) > 2:
            raise ListError(
                f"{path}:{number}: expected `name` or `name kind` with a kind of {', '.join(KINDS)}"
            )
        if name in names:
            raise ListError(f"{path}:{number}: {name} is listed twice")
        names[name] = kind
    if list(names) != sorted(names):
        raise ListError(f"{path}: names are not sorted; run exports.py update")
    return names


def write(path: str | pathlib.Path, names: dict[str, str]) -> None:
    lines = [name if kind == "status" else f"{name} {kind}" for name, kind in sorted(names.items())]
    pathlib.Path(path).write_text("".join(line + "\n" for line in lines))
