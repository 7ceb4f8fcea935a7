"""Request streams for the caching allocator, and the file they are kept in.

An operation is five 64-bit integers: kind, handle, bytes, stream, pool. What each kind means stands beside
it; operations on a handle whose allocation failed are skipped by whoever runs the stream.
"""

from __future__ import annotations

import array
import random
import struct
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path

MIB = 1 << 20
FIELDS = 5


class Kind(IntEnum):
    ALLOCATE = 1  # handle, bytes, stream, pool
    FREE = 2  # handle
    RECORD_STREAM = 3  # handle, stream
    EMPTY_CACHE = 4
    FRACTION = 5  # the fraction's 64 bits as bytes
    BUSY = 6  # stream; bytes 1: its events are not ready from now on, 0: they are
    SETTINGS = 7  # bytes: index into the settings given beside the stream
    CREATE_POOL = 8  # pool; bytes: 1 for use_on_oom, 2 for no_split, or both
    RELEASE_POOL = 9  # pool
    SNAPSHOT = 10
    RESET_PEAKS = 11


@dataclass
class Stream:
    """A list of operations."""

    words: array.array = field(default_factory=lambda: array.array("q"))

    def add(self, kind: Kind, handle: int = 0, size: int = 0, stream: int = 0, pool: int = 0) -> None:
        self.words.extend((kind, handle, size, stream, pool))

    def __len__(self) -> int:
        return len(self.words) // FIELDS

    def write(self, path: Path) -> None:
        path.write_bytes(self.words.tobytes())

    @staticmethod
    def read(path: Path) -> Stream:
        words = array.array("q")
        words.frombytes(path.read_bytes())
        return Stream(words)


@dataclass(frozen=True)
class Profile:
    """What a random stream is like."""

    capacity: int  # of the card, so that the stream meets its end now and then
    streams: int = 1
    record_stream: float = 0.0  # share of frees that another stream has used
    busy: float = 0.0  # share of operations that make a stream busy or let it catch up
    empty_cache: float = 0.0005
    fraction: float = 0.0  # share of operations that set the memory fraction
    settings: int = 0  # how many settings there are to change between
    pools: int = 0
    pool_options: tuple[int, ...] = (0,)
    release_pools: bool = True
    snapshot_every: int = 1000


# Where one size class ends and the next begins.
BORDERS = (512, 1024, MIB, 2 * MIB, 10 * MIB, 20 * MIB, 32 * MIB, 64 * MIB)


class _Sizes:
    """Sizes of one stream: borders, all magnitudes, and a few that come again and again as in training."""

    def __init__(self, rng: random.Random, capacity: int) -> None:
        self.rng = rng
        self.largest = max(capacity // rng.choice((4, 8, 20, 60)), 4096)
        self.favourites = [self.any_magnitude() for _ in range(rng.randint(3, 40))]
        self.shares = rng.choice(((0.1, 0.3), (0.2, 0.9), (0.05, 0.95), (0.5, 0.7)))

    def any_magnitude(self) -> int:
        return min(self.largest, max(1, int(2 ** self.rng.uniform(0, self.largest.bit_length()))))

    def next(self) -> int:
        choice = self.rng.random()
        if choice < 0.001:
            return self.rng.choice((0, 1 << 60, 1 << 45))
        if choice < self.shares[0]:
            border = self.rng.choice(BORDERS) * self.rng.choice((1, 1, 1, 2, 3))
            return min(self.largest, max(1, border + self.rng.randint(-600, 600)))
        if choice < self.shares[1]:
            return self.rng.choice(self.favourites)
        return self.any_magnitude()


def random_stream(seed: int, operations: int, profile: Profile) -> Stream:
    """A stream of about this many operations, the same for the same seed."""
    rng = random.Random(seed)
    out = Stream()
    sizes = _Sizes(rng, profile.capacity)
    live: list[tuple[int, int]] = []  # handle, size
    held = 0
    target = profile.capacity * 1.05
    for pool in range(1, profile.pools + 1):
        out.add(Kind.CREATE_POOL, size=rng.choice(profile.pool_options), pool=pool)
    released: set[int] = set()
    handle = 0
    while len(out) < operations:
        if len(out) % profile.snapshot_every == profile.snapshot_every - 1:
            out.add(Kind.SNAPSHOT)
            target = profile.capacity * rng.choice((0.3, 0.7, 0.95, 1.05))
            continue
        chance = rng.random()
        if chance < profile.empty_cache:
            out.add(Kind.EMPTY_CACHE)
        elif (chance := chance - profile.empty_cache) < profile.fraction:
            fraction = rng.choice((1.0, 0.9, 0.75, 0.5))
            out.add(Kind.FRACTION, size=struct.unpack("q", struct.pack("d", fraction))[0])
        elif (chance := chance - profile.fraction) < profile.busy:
            out.add(Kind.BUSY, size=rng.randint(0, 1), stream=rng.randrange(max(profile.streams, 2)))
        elif (chance := chance - profile.busy) < 0.0002:
            out.add(Kind.RESET_PEAKS)
        elif profile.settings and chance < 0.002:
            out.add(Kind.SETTINGS, size=rng.randrange(profile.settings))
        elif profile.release_pools and chance < 0.0021 and len(released) < profile.pools:
            pool = rng.choice([p for p in range(1, profile.pools + 1) if p not in released])
            released.add(pool)
            out.add(Kind.RELEASE_POOL, pool=pool)
        elif live and (held > target or chance > 0.55):
            # Mostly the youngest, as in a training step; else any.
            index = (
                -1 - min(int(rng.expovariate(0.2)), len(live) - 1)
                if rng.random() < 0.6
                else rng.randrange(len(live))
            )
            live[index], live[-1] = live[-1], live[index]
            victim, size = live.pop()
            held -= size
            while rng.random() < profile.record_stream:
                out.add(Kind.RECORD_STREAM, handle=victim, stream=rng.randrange(max(profile.streams, 2)))
            out.add(Kind.FREE, handle=victim)
        else:
            handle += 1
            size = sizes.next()
            pool = 0
            if profile.pools and rng.random() < 0.3:
                pool = rng.randint(1, profile.pools)
                pool = 0 if pool in released else pool
            out.add(Kind.ALLOCATE, handle=handle, size=size, stream=rng.randrange(profile.streams), pool=pool)
            if 0 < size <= profile.capacity:
                live.append((handle, size))
                held += size
    return out
