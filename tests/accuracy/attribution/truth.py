"""What a block really was, from what was seen in it (witness.py)."""

from __future__ import annotations

from dataclasses import dataclass

# Seen in a block, these are what it is, whoever else holds it.
NAMED = ("optimizer_state", "gradient", "weight", "buffer", "communication")
WORKSPACE_BYTES = 8_519_680  # of cuBLAS, through the caching allocator; no tensor has it by chance
UNNAMED = "unnamed"


@dataclass(frozen=True)
class Truth:
    """The classes that are right for the block, the first the one that it counts for."""

    classes: tuple[str, ...]
    names: tuple[str, ...]  # of a named class


@dataclass(frozen=True)
class Lived:
    bytes: int
    requested: int
    begin: int  # events of allocating and freeing blocks; alive after `begin`, no more after `end`
    end: int
    truth: Truth


def classes_of(labels: list[list[str]], bytes_: int, short: bool) -> tuple[str, ...]:
    kinds = {kind for kind, _ in labels}
    named = tuple(kind for kind in NAMED if kind in kinds)
    if named:
        return named
    found = [kind for kind in ("activation", "output") if kind in kinds]
    if "input" in kinds or ("held_input" in kinds and "output" not in kinds):
        found.append("input")
        if "held_input" in kinds and "input" not in kinds:
            found.append("buffer")  # the script's own constants
    if "held_output" in kinds and "held_input" not in kinds and "output" not in found:
        found.append("output")
    if found == ["activation"] and not short:
        return (UNNAMED,)  # its graph is gone: another, unseen, keeps it (as cuDNN its dropout state)
    if found:
        return tuple(found)
    if not short:
        return (UNNAMED,)
    if bytes_ == WORKSPACE_BYTES:
        return ("workspace",)
    return ("temporary", "workspace")  # the libraries' scratch space is nobody's object


def read(side: dict) -> list[Lived]:
    ends = side["step_ends"]
    lives = []
    for block in side["blocks"]:
        begin = block["begin"]
        end = block["end"] if block["end"] is not None else side["events"] + 1
        # What one optimizer's turn leaves alive may wait for the next one's: the images that a GAN makes.
        ended = sum(begin <= step < end for step in ends)
        short = ended < max(1, side["optimizers"]) and block["end"] is not None
        classes = classes_of(block["labels"], block["requested"], short)
        names = tuple(sorted({name for kind, name in block["labels"] if kind == classes[0]}))
        lives.append(Lived(block["bytes"], block["requested"], begin, end, Truth(classes, names)))
    return lives
