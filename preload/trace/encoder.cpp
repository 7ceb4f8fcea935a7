#include "preload/trace/encoder.h"

#include <cstring>
#include <protozero/types.hpp>
#include <protozero/varint.hpp>

#include "preload/trace/fields.h"
#include "preload/trace/text.h"

namespace vramtrace::trace {
namespace {

// Fields one behind the other into a fixed buffer, with protozero's varints. Not its writers: those append
// byte by byte through the buffer object and throw when it is full (80 ns a block event, against 25 ns); this
// one keeps its place in a register and remembers that something did not fit.
class Writer {
 public:
  explicit Writer(std::span<char> room) : begin_(room.data()), cursor_(begin_), end_(begin_ + room.size()) {}

  // proto3 leaves a field that has its default out.
  void Add(uint32_t tag, uint64_t value) {
    if (value == 0 || !Fits(2 * protozero::max_varint_length)) return;
    char* cursor = cursor_;
    cursor +=
        protozero::write_varint(cursor, tag << 3 | static_cast<uint32_t>(protozero::pbf_wire_type::varint));
    cursor += protozero::write_varint(cursor, value);
    cursor_ = cursor;
  }
  void AddSigned(uint32_t tag, int64_t value) { Add(tag, protozero::encode_zigzag64(value)); }

  // An empty element of a repeated field, or an empty body, is there all the same.
  void AddBytes(uint32_t tag, std::string_view bytes, bool keep_empty = false) {
    if ((bytes.empty() && !keep_empty) || !Announce(tag, bytes.size())) return;
    if (!Fits(bytes.size())) return;
    std::memcpy(cursor_, bytes.data(), bytes.size());
    cursor_ += bytes.size();
  }

  // Returns whether the text was cut.
  bool AddText(uint32_t tag, std::string_view text, bool keep_empty = false) {
    if (text.size() <= kMaxTextBytes && ValidUtf8Prefix(text) == text.size()) {
      AddBytes(tag, text, keep_empty);
      return false;
    }
    char room[kMaxTextBytes];
    bool cut = false;
    AddBytes(tag, CleanText(text, room, &cut), keep_empty);
    return cut;
  }

  void AddShape(uint32_t tag, std::span<const int64_t> shape) {
    char room[kMaxDimensions * protozero::max_varint_length];
    char* cursor = room;
    for (size_t i = 0; i < shape.size() && i < kMaxDimensions; ++i) {
      cursor += protozero::write_varint(cursor, static_cast<uint64_t>(shape[i]));
    }
    AddBytes(tag, {room, static_cast<size_t>(cursor - room)});
  }

  void AddAutograd(uint32_t tag, const AutogradFields& fields) {
    char room[6 * protozero::max_varint_length];
    Writer inner(room);
    inner.Add(1, fields.sequence_number);
    inner.Add(2, fields.operator_name);
    inner.Add(3, fields.node_thread);
    AddBytes(tag, inner.Written());
  }

  // Every field of an encoded message as it stands, but for those whose number's bit is set.
  void AddFields(std::span<const std::byte> message, uint32_t left_out) {
    FieldCursor cursor(message);
    for (Field field; cursor.Next(&field);) {
      if (field.number < 32 && (left_out >> field.number & 1) != 0) continue;
      if (!Fits(field.bytes.size())) return;
      std::memcpy(cursor_, field.bytes.data(), field.bytes.size());
      cursor_ += field.bytes.size();
    }
  }

  // The tag and the length of a message whose bytes stand behind this writer's.
  bool Announce(uint32_t tag, size_t bytes) {
    if (!Fits(2 * protozero::max_varint_length)) return false;
    constexpr auto kType = static_cast<uint32_t>(protozero::pbf_wire_type::length_delimited);
    cursor_ += protozero::write_varint(cursor_, tag << 3 | kType);
    cursor_ += protozero::write_varint(cursor_, bytes);
    return true;
  }

  [[nodiscard]] std::string_view Written() const { return {begin_, static_cast<size_t>(cursor_ - begin_)}; }
  [[nodiscard]] bool Complete() const { return complete_; }

 private:
  bool Fits(size_t bytes) { return complete_ = complete_ && static_cast<size_t>(end_ - cursor_) >= bytes; }

  char* begin_;
  char* cursor_;
  char* end_;
  bool complete_ = true;
};

void Write(Writer& w, const StringPacket& p) {
  w.Add(1, p.id);
  w.Add(3, w.AddText(2, p.text) ? 1 : 0);
}

void Write(Writer& w, const CodePacket& p) {
  w.Add(1, p.id);
  w.Add(2, p.file);
  w.Add(3, p.qualified_name);
  w.Add(4, p.first_line);
}

void Write(Writer& w, const FramePacket& p) {
  w.Add(1, p.id);
  w.Add(2, p.code);
  w.Add(3, p.line);
  w.Add(4, p.module_object);
  w.Add(5, p.pc);
  w.Add(6, p.binary);
}

void Write(Writer& w, const StackPacket& p) {
  w.Add(1, p.id);
  w.Add(2, p.parent);
  w.Add(3, p.frame);
}

void Write(Writer& w, const BinaryPacket& p) {
  w.Add(1, p.id);
  w.Add(2, p.path);
  w.AddBytes(3, p.build_id);
  w.Add(4, p.load_bias);
  w.Add(5, p.begin);
  w.Add(6, p.end);
}

void Write(Writer& w, const BlockAllocatePacket& p) {
  w.AddSigned(1, p.address_delta);
  w.Add(2, p.bytes);
  w.Add(3, p.requested);
  w.Add(4, p.stack);
  w.Add(5, p.device);
  w.Add(6, p.thread);
  w.AddAutograd(7, p.autograd);
  w.Add(8, p.allocated_total);
  w.Add(9, p.reserved_total);
}

void Write(Writer& w, const BlockFreePacket& p) {
  w.AddSigned(1, p.address_delta);
  w.Add(2, p.bytes);
  w.Add(3, p.stack);
  w.Add(4, p.device);
  w.AddAutograd(5, p.autograd);
  w.Add(6, p.allocated_total);
  w.Add(7, p.reserved_total);
}

void Write(Writer& w, const DriverAllocatePacket& p) {
  w.AddSigned(1, p.address_delta);
  w.Add(2, p.bytes);
  w.Add(3, p.stack);
  w.Add(4, p.device);
  w.Add(5, p.kind);
  w.Add(6, p.function);
  w.Add(7, p.caller);
  w.Add(8, p.result);
  w.Add(9, p.stream);
  w.Add(10, p.duration_ns);
}

void Write(Writer& w, const DriverFreePacket& p) {
  w.AddSigned(1, p.address_delta);
  w.Add(2, p.stack);
  w.Add(3, p.device);
  w.Add(4, p.kind);
  w.Add(5, p.function);
  w.Add(6, p.caller);
  w.Add(7, p.result);
  w.Add(8, p.stream);
}

void Write(Writer& w, const MemoryMapPacket& p) {
  w.AddSigned(1, p.address_delta);
  w.Add(2, p.bytes);
  w.Add(3, p.handle);
  w.Add(4, p.offset);
  w.Add(5, p.device);
}

void Write(Writer& w, const MemoryUnmapPacket& p) {
  w.AddSigned(1, p.address_delta);
  w.Add(2, p.bytes);
  w.Add(3, p.device);
}

void Write(Writer& w, const HostAllocatePacket& p) {
  w.AddSigned(1, p.address_delta);
  w.Add(2, p.bytes);
  w.Add(3, p.stack);
  w.Add(4, p.function);
  w.Add(5, p.caller);
  w.Add(6, p.result);
}

void Write(Writer& w, const HostFreePacket& p) {
  w.AddSigned(1, p.address_delta);
  w.Add(2, p.stack);
  w.Add(3, p.function);
  w.Add(4, p.caller);
  w.Add(5, p.result);
}

void Write(Writer& w, const MemoryQueryPacket& p) {
  w.Add(1, p.device);
  w.Add(2, p.free_bytes);
  w.Add(3, p.total_bytes);
  w.Add(4, p.reason);
}

void Write(Writer& w, const OutOfMemoryPacket& p) {
  w.Add(1, p.requested);
  w.Add(2, p.allocated_total);
  w.Add(3, p.reserved_total);
  w.Add(4, p.device);
  w.Add(5, p.stack);
  w.AddAutograd(6, p.autograd);
}

void Write(Writer& w, const LabelPacket& p) {
  w.AddSigned(1, p.address_delta);
  w.Add(2, p.bytes);
  w.Add(3, p.kind);
  w.Add(4, p.name);
  w.Add(5, p.state_key);
  w.Add(6, p.dtype);
  w.AddShape(7, p.shape);
  w.Add(8, p.device);
}

void Write(Writer& w, const ModulePacket& p) {
  w.Add(1, p.object);
  w.Add(2, p.path);
  w.Add(3, p.class_name);
  w.Add(4, p.parent);
}

void Write(Writer& w, const StepPacket& p) {
  w.Add(1, p.number);
  w.Add(2, p.edge);
  w.Add(3, p.optimizer);
  w.Add(4, p.optimizer_object);
}

void Write(Writer& w, const PhaseMarkPacket& p) {
  w.Add(1, p.name);
  w.Add(2, p.end ? 1 : 0);
}

void Write(Writer& w, const InputTensorPacket& p) {
  w.Add(1, p.name);
  w.AddSigned(2, p.address_delta);
  w.Add(3, p.bytes);
  w.AddShape(4, p.shape);
  w.Add(5, p.dtype);
  w.Add(6, p.step);
  w.Add(7, p.on_device ? 1 : 0);
  w.Add(8, p.module_object);
}

void Write(Writer& w, const ProcessPacket& p) {
  w.Add(1, p.pid);
  w.Add(2, p.parent_pid);
  w.Add(3, p.rank);
  w.Add(4, p.local_rank);
  w.Add(5, p.world_size);
  w.Add(6, p.start_unix_ns);
  w.Add(7, p.start_monotonic_ns);
  for (const std::string_view argument : p.argument) w.AddText(8, argument, true);
  for (const std::string_view variable : p.environment) w.AddText(9, variable, true);
  w.AddText(10, p.host);
  w.AddText(11, p.executable);
  w.AddText(12, p.writer_version);
  w.AddText(13, p.python_version);
  w.AddText(14, p.torch_version);
  w.AddText(15, p.working_folder);
  w.Add(16, p.simulated ? 1 : 0);
  w.AddText(17, p.driver_version);
  w.AddText(18, p.cuda_runtime_version);
}

void Write(Writer& w, const DevicePacket& p) {
  w.Add(1, p.device);
  w.AddText(2, p.name);
  w.Add(3, p.total_bytes);
  w.Add(4, p.compute_major);
  w.Add(5, p.compute_minor);
  w.Add(6, p.multiprocessors);
  w.AddText(7, p.uuid);
}

void Write(Writer& w, const ContextPacket& p) {
  w.Add(1, p.device);
  w.Add(2, p.context);
  w.Add(3, p.destroyed ? 1 : 0);
}

void Write(Writer& w, const ThreadPacket& p) {
  w.Add(1, p.id);
  w.Add(2, p.system_id);
  w.AddText(3, p.name);
}

void Write(Writer& w, const FeaturePacket& p) {
  w.Add(1, p.name);
  w.Add(2, p.on ? 1 : 0);
  w.AddText(3, p.reason);
}

void Write(Writer& w, const LossPacket& p) {
  w.Add(1, p.reason);
  w.Add(2, p.events);
  w.AddText(3, p.text);
}

void Write(Writer& w, const TrailerPacket& p) {
  w.Add(1, p.events);
  w.Add(2, p.block_allocations);
  w.Add(3, p.block_frees);
  w.Add(4, p.driver_allocations);
  w.Add(5, p.lost_events);
}

void Write(Writer& w, const DroppedPacket& p) {
  w.Add(1, p.first_sequence);
  w.Add(2, p.last_sequence);
  w.Add(3, p.events);
  w.Add(4, p.first_step);
  w.Add(5, p.steps);
  w.Add(6, p.first_time_ns);
  w.Add(7, p.last_time_ns);
}

void Write(Writer& w, const StepSummaryPacket& p) {
  w.Add(1, p.first_step);
  w.Add(2, p.steps);
  w.Add(3, p.device);
  w.Add(4, p.peak);
  w.Add(5, p.low);
  w.Add(6, p.reserved);
  w.Add(7, p.driver);
  w.Add(8, p.events);
  w.Add(9, p.retries);
  w.Add(10, p.end_time_ns);
  w.Add(11, p.last_sequence);
}

void Write(Writer& w, const CopiedBody& p) {
  w.AddFields(p.body, p.left_out | uint32_t{1} << p.address_field);
  if (p.address_field != 0) w.AddSigned(p.address_field, p.address_delta);
}

// What stands in front of a body: the packet's length, sequence and time, the body's tag and length; each
// number with the room that a writer wants to see.
constexpr size_t kHeadBytes = 8 * protozero::max_varint_length;

template <typename Body>
std::span<const std::byte> Encode(uint32_t number, const PacketStamp& stamp, const Body& body,
                                  std::span<std::byte> buffer) noexcept {
  if (buffer.size() < kHeadBytes) return {};
  const std::span<char> room(reinterpret_cast<char*>(buffer.data()), buffer.size());
  // The body comes first, its head then right in front of it: lengths are known when they are written.
  Writer writer(room.subspan(kHeadBytes));
  Write(writer, body);
  if (!writer.Complete()) return {};
  char head_room[kHeadBytes];
  Writer head(head_room);
  head.Add(1, stamp.sequence_delta);
  head.Add(2, stamp.time_delta_ns);
  head.Announce(number, writer.Written().size());
  char length[protozero::max_varint_length];
  const size_t packet_bytes = head.Written().size() + writer.Written().size();
  const auto length_bytes = static_cast<size_t>(protozero::write_varint(length, packet_bytes));
  const size_t begin = kHeadBytes - head.Written().size() - length_bytes;
  std::memcpy(room.data() + begin, length, length_bytes);
  std::memcpy(room.data() + begin + length_bytes, head.Written().data(), head.Written().size());
  return buffer.subspan(begin, length_bytes + packet_bytes);
}

}  // namespace

#define VRAMTRACE_DEFINE_ENCODER(Message, number)                                                \
  std::span<const std::byte> EncodePacket(const PacketStamp& stamp, const Message##Packet& body, \
                                          std::span<std::byte> buffer) noexcept {                \
    return Encode(number, stamp, body, buffer);                                                  \
  }
VRAMTRACE_TRACE_PACKETS(VRAMTRACE_DEFINE_ENCODER)
#undef VRAMTRACE_DEFINE_ENCODER

std::span<const std::byte> EncodeCopy(const PacketStamp& stamp, const CopiedBody& body,
                                      std::span<std::byte> buffer) noexcept {
  return Encode(body.number, stamp, body, buffer);
}

}  // namespace vramtrace::trace
