"""Makes a long trace of a real one: its last whole step over and over, as a program that ran longer would
record it. Addresses, stacks and sizes stay; sequence numbers, times and the numbers of steps go on.

    python -m tests.bench.repeat IN.vtrace OUT.vtrace EVENTS
"""

from __future__ import annotations

import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path

# preload/trace/chunk.h and vramtrace.proto.
HEADER = struct.Struct("<QIIIIQQQIIIIQQQQQ24s")
MAGIC = 0x314B4E4843545256
STEP_FIELD, TRAILER_FIELD = 14, 24
OPTIMIZER_END = 1


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


@dataclass
class Packet:
    sequence: int  # 0: no event
    time: int
    body: bytes  # without the two deltas
    kind: int  # number of the oneof's field

    @property
    def step(self) -> tuple[int, int] | None:
        """Number and edge of a Step."""
        if self.kind != STEP_FIELD:
            return None
        _, at = read_varint(self.body, 0)
        end, at = read_varint(self.body, at)
        number = edge = 0
        end += at
        while at < end:
            key, at = read_varint(self.body, at)
            value, at = read_varint(self.body, at)
            if key >> 3 == 1:
                number = value
            if key >> 3 == 2:
                edge = value
        return number, edge

    def with_step(self, more: int) -> bytes:
        _, at = read_varint(self.body, 0)
        _, at = read_varint(self.body, at)
        fields, number = self.body[at:], 0
        if fields[:1] == b"\x08":
            number, at = read_varint(fields, 1)
            fields = fields[at:]
        message = b"\x08" + varint(number + more) + fields
        return varint(STEP_FIELD << 3 | 2) + varint(len(message)) + message


def encode(packet: Packet, body: bytes, after: tuple[int, int]) -> bytes:
    deltas = b""
    if packet.sequence:
        deltas = (
            b"\x08" + varint(packet.sequence - after[0]) + b"\x10" + varint(max(0, packet.time - after[1]))
        )
    return varint(len(deltas) + len(body)) + deltas + body


@dataclass
class Stream:
    """The packets of one thread, or of the tables, that lie relative to the same address."""

    header: tuple
    packets: list[Packet] = field(default_factory=list)


def read(path: Path) -> list[Stream]:
    data = path.read_bytes()
    streams: dict[tuple[int, int, int], Stream] = {}
    chunk_bytes = HEADER.unpack_from(data)[5]
    for start in range(0, len(data) - HEADER.size, chunk_bytes):
        header = HEADER.unpack_from(data, start)
        if header[0] != MAGIC:
            continue
        time, sequence, address = header[12], header[14], header[15]
        stream = streams.setdefault((header[4], header[10], address), Stream(header))
        at, end = start + header[3], start + header[3] + header[7]
        while at < end:
            length, at = read_varint(data, at)
            stop, own, has = at + length, at, False
            while own < stop and data[own] in (0x08, 0x10):
                key = data[own]
                value, own = read_varint(data, own + 1)
                if key == 0x08:
                    sequence, has = sequence + value, True
                else:
                    time += value
            body = data[own:stop]
            kind = read_varint(body, 0)[0] >> 3
            stream.packets.append(Packet(sequence if has else 0, time, body, kind))
            at = stop
    return list(streams.values())


class Writer:
    def __init__(self, path: Path, chunk_bytes: int) -> None:
        self.file = path.open("wb")
        self.chunk_bytes = chunk_bytes
        self.index = 0

    def chunk(self, header: tuple, base: tuple[int, int], last_time: int, packets: bytes) -> None:
        values = list(header)
        values[3], values[6], values[7], values[8], values[9] = HEADER.size, self.index, len(packets), 0, 0
        values[12], values[13], values[14] = base[1], last_time, base[0]
        self.file.write(HEADER.pack(*values) + packets.ljust(self.chunk_bytes - HEADER.size, b"\0"))
        self.index += 1


class Appender:
    """Writes one stream: chunk after chunk, each relative to the packet before it."""

    def __init__(self, stream: Stream, writer: Writer) -> None:
        self.stream, self.writer = stream, writer
        self.last = self.base = (stream.header[14], stream.header[12])
        self.buffer = bytearray()

    def add(self, data: bytes, last: tuple[int, int]) -> None:
        """`data` are packets relative to `self.last`; `last`: sequence and time of the newest."""
        if len(self.buffer) + len(data) > self.writer.chunk_bytes - HEADER.size:
            self.flush()
        self.buffer += data
        self.last = last

    def flush(self) -> None:
        if self.buffer:
            self.writer.chunk(self.stream.header, self.base, self.last[1], bytes(self.buffer))
        self.base = self.last
        self.buffer = bytearray()

    def one(self, packet: Packet, sequence: int = 0, time: int = 0, steps: int = 0) -> None:
        moved = Packet(
            packet.sequence + sequence if packet.sequence else 0, packet.time + time, b"", packet.kind
        )
        body = packet.with_step(steps) if packet.kind == STEP_FIELD and steps else packet.body
        data = encode(moved, body, self.last)
        self.add(data, (moved.sequence, max(moved.time, self.last[1])) if moved.sequence else self.last)


def pieces(window: list[Packet]) -> list[list[Packet] | Packet]:
    """Runs whose bytes are the same in every repetition, and the packets between them that are not: the
    first, and steps."""
    found: list[list[Packet] | Packet] = []
    for i, packet in enumerate(window):
        if i == 0 or packet.kind == STEP_FIELD or not isinstance(found[-1], list):
            found.append(packet if i == 0 or packet.kind == STEP_FIELD else [packet])
        elif len(found[-1]) < 2000:
            found[-1].append(packet)
        else:
            found.append([packet])
    return found


def repeat(source: Path, target: Path, events: int) -> int:
    """Returns the number of events written."""
    streams = read(source)
    ends = sorted(p.sequence for s in streams for p in s.packets if p.step and p.step[1] == OPTIMIZER_END)
    if len(ends) < 3:
        raise ValueError(f"{source}: fewer than three steps")
    begin, end = ends[-2], ends[-1]  # the window: behind `begin`, up to `end`
    times = {p.sequence: p.time for s in streams for p in s.packets if p.sequence in (begin, end)}
    length, duration = end - begin, times[end] - times[begin]
    most = max(p.sequence for s in streams for p in s.packets)
    rounds = max(0, -(-(events - most) // length))
    writer = Writer(target, streams[0].header[5])
    appenders = [Appender(stream, writer) for stream in streams]
    for appender in appenders:
        for packet in appender.stream.packets:
            if packet.kind != TRAILER_FIELD and packet.sequence <= end:
                appender.one(packet)
    for appender in appenders:
        window = [p for p in appender.stream.packets if begin < p.sequence <= end]
        _repeat_window(appender, pieces(window), rounds, length, duration)
    for appender in appenders:
        for packet in appender.stream.packets:
            if packet.sequence > end:
                appender.one(packet, rounds * length, rounds * duration, rounds)
        for packet in appender.stream.packets:
            if packet.kind == TRAILER_FIELD:
                appender.one(packet)
        appender.flush()
    writer.file.close()
    return most + rounds * length


def _repeat_window(appender: Appender, parts: list, rounds: int, length: int, duration: int) -> None:
    known: dict[int, bytes] = {}
    for turn in range(1, rounds + 1):
        for i, part in enumerate(parts):
            if isinstance(part, Packet):
                appender.one(part, turn * length, turn * duration, turn)
                continue
            if i not in known:
                after = (appender.last[0] - turn * length, appender.last[1] - turn * duration)
                encoded = []
                for packet in part:
                    encoded.append(encode(packet, packet.body, after))
                    after = (packet.sequence, max(packet.time, after[1]))
                known[i] = b"".join(encoded)
            last = part[-1]
            appender.add(known[i], (last.sequence + turn * length, last.time + turn * duration))


if __name__ == "__main__":
    print(repeat(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])))
