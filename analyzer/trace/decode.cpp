#include "analyzer/trace/decode.h"

#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>

namespace vramtrace::trace {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

constexpr uint32_t kSequenceDelta = 1;
constexpr uint32_t kTimeDelta = 2;
constexpr uint32_t kLastKnownBody = static_cast<uint32_t>(PacketKind::kStepSummary);

// Cases are (field, wire type) pairs: a field of another wire type is skipped like an unknown one.
constexpr uint32_t Varint(uint32_t field) { return protozero::tag_and_type(field, pbf_wire_type::varint); }
constexpr uint32_t Bytes(uint32_t field) {
  return protozero::tag_and_type(field, pbf_wire_type::length_delimited);
}

uint64_t Absolute(const ChunkClock& clock, int64_t delta) {
  return clock.base_address + static_cast<uint64_t>(delta);
}

void DecodeAutograd(pbf_reader reader, AutogradPosition* autograd) {
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case Varint(1):
        autograd->sequence_number = reader.get_uint64();
        break;
      case Varint(2):
        autograd->operator_name = StringId{reader.get_uint32()};
        break;
      case Varint(3):
        autograd->node_thread = reader.get_uint64();
        break;
      default:
        reader.skip();
    }
  }
}

void DecodeBlockAllocate(pbf_reader reader, const ChunkClock& clock, Event* event) {
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case Varint(1):
        event->address = Absolute(clock, reader.get_sint64());
        break;
      case Varint(2):
        event->bytes = reader.get_uint64();
        break;
      case Varint(3):
        event->requested = reader.get_uint64();
        break;
      case Varint(4):
        event->stack = StackId{reader.get_uint32()};
        break;
      case Varint(5):
        event->device = DeviceIndex{reader.get_uint32()};
        break;
      case Varint(6):
        event->thread = ThreadId{reader.get_uint32()};
        break;
      case Bytes(7):
        DecodeAutograd(reader.get_message(), &event->autograd);
        break;
      case Varint(8):
        event->allocated_total = reader.get_uint64();
        event->has_totals = true;
        break;
      case Varint(9):
        event->reserved_total = reader.get_uint64();
        event->has_totals = true;
        break;
      default:
        reader.skip();
    }
  }
}

void DecodeBlockFree(pbf_reader reader, const ChunkClock& clock, Event* event) {
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case Varint(1):
        event->address = Absolute(clock, reader.get_sint64());
        break;
      case Varint(2):
        event->bytes = reader.get_uint64();
        break;
      case Varint(3):
        event->stack = StackId{reader.get_uint32()};
        break;
      case Varint(4):
        event->device = DeviceIndex{reader.get_uint32()};
        break;
      case Bytes(5):
        DecodeAutograd(reader.get_message(), &event->autograd);
        break;
      case Varint(6):
        event->allocated_total = reader.get_uint64();
        event->has_totals = true;
        break;
      case Varint(7):
        event->reserved_total = reader.get_uint64();
        event->has_totals = true;
        break;
      default:
        reader.skip();
    }
  }
}

void DecodeDriverAllocate(pbf_reader reader, const ChunkClock& clock, Event* event) {
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case Varint(1):
        event->address = Absolute(clock, reader.get_sint64());
        break;
      case Varint(2):
        event->bytes = reader.get_uint64();
        break;
      case Varint(3):
        event->stack = StackId{reader.get_uint32()};
        break;
      case Varint(4):
        event->device = DeviceIndex{reader.get_uint32()};
        break;
      case Varint(5):
        event->memory_kind = static_cast<MemoryKind>(reader.get_enum());
        break;
      case Varint(6):
        event->function = StringId{reader.get_uint32()};
        break;
      case Varint(7):
        event->caller = StringId{reader.get_uint32()};
        break;
      case Varint(8):
        event->result = reader.get_uint32();
        break;
      default:
        reader.skip();
    }
  }
}

void DecodeDriverFree(pbf_reader reader, const ChunkClock& clock, Event* event) {
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case Varint(1):
        event->address = Absolute(clock, reader.get_sint64());
        break;
      case Varint(2):
        event->stack = StackId{reader.get_uint32()};
        break;
      case Varint(3):
        event->device = DeviceIndex{reader.get_uint32()};
        break;
      case Varint(4):
        event->memory_kind = static_cast<MemoryKind>(reader.get_enum());
        break;
      case Varint(5):
        event->function = StringId{reader.get_uint32()};
        break;
      case Varint(6):
        event->caller = StringId{reader.get_uint32()};
        break;
      case Varint(7):
        event->result = reader.get_uint32();
        break;
      default:
        reader.skip();
    }
  }
}

void DecodeMemoryQuery(pbf_reader reader, Event* event) {
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case Varint(1):
        event->device = DeviceIndex{reader.get_uint32()};
        break;
      case Varint(2):
        event->free_bytes = reader.get_uint64();
        break;
      case Varint(3):
        event->total_bytes = reader.get_uint64();
        break;
      case Varint(4):
        event->reason = static_cast<QueryReason>(reader.get_enum());
        break;
      default:
        reader.skip();
    }
  }
}

void DecodeOutOfMemory(pbf_reader reader, Event* event) {
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case Varint(1):
        event->requested = reader.get_uint64();
        break;
      case Varint(2):
        event->allocated_total = reader.get_uint64();
        event->has_totals = true;
        break;
      case Varint(3):
        event->reserved_total = reader.get_uint64();
        event->has_totals = true;
        break;
      case Varint(4):
        event->device = DeviceIndex{reader.get_uint32()};
        break;
      case Varint(5):
        event->stack = StackId{reader.get_uint32()};
        break;
      case Bytes(6):
        DecodeAutograd(reader.get_message(), &event->autograd);
        break;
      default:
        reader.skip();
    }
  }
}

void DecodeHost(pbf_reader reader, const ChunkClock& clock, bool allocate, Event* event) {
  while (reader.next()) {
    // HostFree is HostAllocate without `bytes`: its fields from 2 on are numbered one lower.
    const bool shifted = !allocate && reader.tag() >= 2;
    const uint32_t field = reader.tag() + (shifted ? 1 : 0);
    switch (protozero::tag_and_type(field, reader.wire_type())) {
      case Varint(1):
        event->address = Absolute(clock, reader.get_sint64());
        break;
      case Varint(2):
        event->bytes = reader.get_uint64();
        break;
      case Varint(3):
        event->stack = StackId{reader.get_uint32()};
        break;
      case Varint(4):
        event->function = StringId{reader.get_uint32()};
        break;
      case Varint(5):
        event->caller = StringId{reader.get_uint32()};
        break;
      case Varint(6):
        event->result = reader.get_uint32();
        break;
      default:
        reader.skip();
    }
  }
}

void DecodeMemoryMap(pbf_reader reader, const ChunkClock& clock, Event* event) {
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case Varint(1):
        event->address = Absolute(clock, reader.get_sint64());
        break;
      case Varint(2):
        event->bytes = reader.get_uint64();
        break;
      case Varint(3):
        event->handle = reader.get_uint64();
        break;
      case Varint(5):
        event->device = DeviceIndex{reader.get_uint32()};
        break;
      default:
        reader.skip();
    }
  }
}

void DecodeMemoryUnmap(pbf_reader reader, const ChunkClock& clock, Event* event) {
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case Varint(1):
        event->address = Absolute(clock, reader.get_sint64());
        break;
      case Varint(2):
        event->bytes = reader.get_uint64();
        break;
      case Varint(3):
        event->device = DeviceIndex{reader.get_uint32()};
        break;
      default:
        reader.skip();
    }
  }
}

// Of what was dropped on purpose the stream needs to know how much.
void DecodeDropped(pbf_reader reader, Event* event) {
  while (reader.next()) {
    if (reader.tag_and_type() == Varint(3)) {
      event->dropped = reader.get_uint64();
    } else {
      reader.skip();
    }
  }
}

void DecodeBody(pbf_reader body, const ChunkClock& clock, Event* event) {
  event->address = clock.base_address;  // a delta of zero is not written
  switch (event->kind) {
    case PacketKind::kBlockAllocate:
      return DecodeBlockAllocate(body, clock, event);
    case PacketKind::kBlockFree:
      return DecodeBlockFree(body, clock, event);
    case PacketKind::kDriverAllocate:
      return DecodeDriverAllocate(body, clock, event);
    case PacketKind::kDriverFree:
      return DecodeDriverFree(body, clock, event);
    case PacketKind::kMemoryQuery:
      return DecodeMemoryQuery(body, event);
    case PacketKind::kOutOfMemory:
      return DecodeOutOfMemory(body, event);
    case PacketKind::kHostAllocate:
      return DecodeHost(body, clock, true, event);
    case PacketKind::kHostFree:
      return DecodeHost(body, clock, false, event);
    case PacketKind::kMemoryMap:
      return DecodeMemoryMap(body, clock, event);
    case PacketKind::kMemoryUnmap:
      return DecodeMemoryUnmap(body, clock, event);
    case PacketKind::kDropped:
      return DecodeDropped(body, event);
    default:
      return;
  }
}

void DecodeOuter(std::string_view packet, ChunkClock* clock, Event* event) {
  pbf_reader reader(packet.data(), packet.size());
  while (reader.next()) {
    if (reader.tag_and_type() == Varint(kSequenceDelta)) {
      const uint64_t delta = reader.get_uint64();
      clock->sequence += delta;
      event->has_sequence = delta != 0;
    } else if (reader.tag_and_type() == Varint(kTimeDelta)) {
      clock->time_ns += reader.get_uint64();
    } else if (reader.tag() <= kLastKnownBody && reader.wire_type() == pbf_wire_type::length_delimited) {
      event->kind = static_cast<PacketKind>(reader.tag());  // before the value: debug builds forget it then
      const protozero::data_view view = reader.get_view();
      event->body = std::string_view(view.data(), view.size());
    } else {
      reader.skip();
    }
  }
}

// A chunk that was handed on when its thread ended: the packets from here on are another's.
void FollowThread(pbf_reader thread, ChunkClock* clock) {
  while (thread.next()) {
    if (thread.tag_and_type() == Varint(1)) {
      clock->thread = ThreadId{thread.get_uint32()};
    } else {
      thread.skip();
    }
  }
}

}  // namespace

DecodeStatus DecodeHead(std::string_view packet, ChunkClock* clock, Event* event) {
  *event = Event{};
  try {
    DecodeOuter(packet, clock, event);
    // Table chunks, whose clock has no thread, define threads by the same packet.
    if (event->kind == PacketKind::kThread && clock->thread != ThreadId::kNone) {
      FollowThread(pbf_reader(event->body.data(), event->body.size()), clock);
    }
  } catch (const protozero::exception&) {
    return DecodeStatus::kMalformed;
  }
  event->sequence = clock->sequence;
  event->time_ns = clock->time_ns;
  event->thread = clock->thread;
  event->base_address = clock->base_address;
  return event->kind == PacketKind::kNone ? DecodeStatus::kUnknown : DecodeStatus::kDecoded;
}

DecodeStatus DecodePacket(std::string_view packet, ChunkClock* clock, Event* event) {
  const DecodeStatus status = DecodeHead(packet, clock, event);
  if (status != DecodeStatus::kDecoded) return status;
  try {
    DecodeBody(pbf_reader(event->body.data(), event->body.size()), *clock, event);
  } catch (const protozero::exception&) {
    return DecodeStatus::kMalformed;
  }
  return DecodeStatus::kDecoded;
}

}  // namespace vramtrace::trace
