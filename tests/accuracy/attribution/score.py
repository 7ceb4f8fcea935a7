"""Told against true, in bytes: at the peak, and over the whole run (bytes times the events they lived)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.accuracy.attribution.truth import UNNAMED, Lived


@dataclass(frozen=True)
class Told:
    bytes: int
    requested: int
    memory_class: str
    names: tuple[str, ...]
    rule: str


@dataclass
class Score:
    """Weights are bytes, or bytes times events."""

    right: int = 0
    all: int = 0
    unknown: int = 0
    unnamed: int = 0  # the witness cannot say; in no other sum
    names_right: int = 0
    names_all: int = 0
    told: Counter = field(default_factory=Counter)
    true: Counter = field(default_factory=Counter)
    both: Counter = field(default_factory=Counter)
    confused: Counter = field(default_factory=Counter)  # (true, told, rule)

    def add(self, told: Told, lived: Lived, weight: int) -> None:
        classes = lived.truth.classes
        if classes[0] == UNNAMED:
            self.unnamed += weight
            return
        self.all += weight
        correct = told.memory_class in classes
        true = told.memory_class if correct else classes[0]
        self.told[told.memory_class] += weight
        self.true[true] += weight
        self.unknown += weight if told.memory_class == "unknown" else 0
        if correct:
            self.right += weight
            self.both[true] += weight
            if lived.truth.names and all(lived.truth.names) and told.names:
                self.names_all += weight
                self.names_right += weight if set(told.names) <= set(lived.truth.names) else 0
        else:
            self.confused[(true, told.memory_class, told.rule)] += weight

    def precision(self, memory_class: str) -> float:
        return self.both[memory_class] / max(1, self.told[memory_class])

    def recall(self, memory_class: str) -> float:
        return self.both[memory_class] / max(1, self.true[memory_class])

    @property
    def share_right(self) -> float:
        return self.right / max(1, self.all)


def peak_of(lives: list[Lived]) -> int:
    """The event after which the most bytes were allocated, the first such."""
    changes: dict[int, int] = {}
    for lived in lives:
        changes[lived.begin] = changes.get(lived.begin, 0) + lived.bytes
        changes[lived.end] = changes.get(lived.end, 0) - lived.bytes
    allocated = highest = at = 0
    for event in sorted(changes):
        allocated += changes[event]
        if allocated > highest:
            highest, at = allocated, event
    return at


def score(told: list[Told], lives: list[Lived]) -> tuple[Score, Score]:
    """At the peak, and over the run. Both lists are in the order of allocation; two runs of one script must
    have allocated the same."""
    mine = [(block.bytes, block.requested) for block in told]
    theirs = [(lived.bytes, lived.requested) for lived in lives]
    if mine != theirs:
        at = next((i for i, pair in enumerate(zip(mine, theirs)) if pair[0] != pair[1]), len(theirs))
        raise AssertionError(
            f"the run and the watched run differ: {len(mine)} and {len(theirs)} blocks, first at block {at}: "
            f"{mine[at : at + 1]} and {theirs[at : at + 1]}"
        )
    peak = peak_of(lives)
    at_peak, over_time = Score(), Score()
    for block, lived in zip(told, lives):
        if lived.begin <= peak < lived.end:
            at_peak.add(block, lived, block.bytes)
        over_time.add(block, lived, block.bytes * (lived.end - lived.begin))
    return at_peak, over_time
