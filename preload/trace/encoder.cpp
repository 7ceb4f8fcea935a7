#include "preload/trace/encoder.h"

#include <exception>
#include <protozero/basic_pbf_writer.hpp>
#include <protozero/buffer_fixed.hpp>

#include "preload/trace/text.h"

namespace vramtrace::trace {
namespace {

using Writer = protozero::basic_pbf_writer<protozero::fixed_size_buffer_adaptor>;
using Tag = protozero::pbf_tag_type;

// proto3 leaves a field that has its default out.
void Add(Writer& writer, Tag tag, uint64_t value) {
  if (value != 0) writer.add_uint64(tag, value);
}
void AddSigned(Writer& writer, Tag tag, int64_t value) {
  if (value != 0) writer.add_sint64(tag, value);
}
void AddBytes(Writer& writer, Tag tag, std::string_view bytes) {
  if (!bytes.empty()) writer.add_bytes(tag, bytes.data(), bytes.size());
}

// Returns whether the text was cut. An empty element of a repeated field is an element all the same.
bool AddText(Writer& writer, Tag tag, std::string_view text, bool keep_empty = false) {
  if (text.empty() && !keep_empty) return false;
  if (text.size() <= kMaxTextBytes && ValidUtf8Prefix(text) == text.size()) {
    writer.add_string(tag, text.data(), text.size());
    return false;
  }
  char room[kMaxTextBytes];
  bool cut = false;
  const std::string_view clean = CleanText(text, room, &cut);
  writer.add_string(tag, clean.data(), clean.size());
  return cut;
}

void AddShape(Writer& writer, Tag tag, std::span<const int64_t> shape) {
  const auto used = shape.first(shape.size() < kMaxDimensions ? shape.size() : kMaxDimensions);
  writer.add_packed_int64(tag, used.begin(), used.end());
}

void AddAutograd(Writer& writer, Tag tag, const AutogradFields& fields) {
  // An empty sub-message is rolled back by the writer's destructor: nothing is written.
  Writer inner(writer, tag);
  Add(inner, 1, fields.sequence_number);
  Add(inner, 2, fields.operator_name);
  Add(inner, 3, fields.node_thread);
}

void Write(Writer& w, const StringPacket& p) {
  Add(w, 1, p.id);
  Add(w, 3, AddText(w, 2, p.text) ? 1 : 0);
}

void Write(Writer& w, const CodePacket& p) {
  Add(w, 1, p.id);
  Add(w, 2, p.file);
  Add(w, 3, p.qualified_name);
  Add(w, 4, p.first_line);
}

void Write(Writer& w, const FramePacket& p) {
  Add(w, 1, p.id);
  Add(w, 2, p.code);
  Add(w, 3, p.line);
  Add(w, 4, p.module_object);
  Add(w, 5, p.pc);
  Add(w, 6, p.binary);
}

void Write(Writer& w, const StackPacket& p) {
  Add(w, 1, p.id);
  Add(w, 2, p.parent);
  Add(w, 3, p.frame);
}

void Write(Writer& w, const BinaryPacket& p) {
  Add(w, 1, p.id);
  Add(w, 2, p.path);
  AddBytes(w, 3, p.build_id);
  Add(w, 4, p.load_bias);
  Add(w, 5, p.begin);
  Add(w, 6, p.end);
}

void Write(Writer& w, const BlockAllocatePacket& p) {
  AddSigned(w, 1, p.address_delta);
  Add(w, 2, p.bytes);
  Add(w, 3, p.requested);
  Add(w, 4, p.stack);
  Add(w, 5, p.device);
  Add(w, 6, p.thread);
  AddAutograd(w, 7, p.autograd);
  Add(w, 8, p.allocated_total);
  Add(w, 9, p.reserved_total);
}

void Write(Writer& w, const BlockFreePacket& p) {
  AddSigned(w, 1, p.address_delta);
  Add(w, 2, p.bytes);
  Add(w, 3, p.stack);
  Add(w, 4, p.device);
  AddAutograd(w, 5, p.autograd);
  Add(w, 6, p.allocated_total);
  Add(w, 7, p.reserved_total);
}

void Write(Writer& w, const DriverAllocatePacket& p) {
  AddSigned(w, 1, p.address_delta);
  Add(w, 2, p.bytes);
  Add(w, 3, p.stack);
  Add(w, 4, p.device);
  Add(w, 5, p.kind);
  Add(w, 6, p.function);
  Add(w, 7, p.caller);
  Add(w, 8, p.result);
  Add(w, 9, p.stream);
  Add(w, 10, p.duration_ns);
}

void Write(Writer& w, const DriverFreePacket& p) {
  AddSigned(w, 1, p.address_delta);
  Add(w, 2, p.stack);
  Add(w, 3, p.device);
  Add(w, 4, p.kind);
  Add(w, 5, p.function);
  Add(w, 6, p.caller);
  Add(w, 7, p.result);
  Add(w, 8, p.stream);
}

void Write(Writer& w, const MemoryMapPacket& p) {
  AddSigned(w, 1, p.address_delta);
  Add(w, 2, p.bytes);
  Add(w, 3, p.handle);
  Add(w, 4, p.offset);
  Add(w, 5, p.device);
}

void Write(Writer& w, const MemoryUnmapPacket& p) {
  AddSigned(w, 1, p.address_delta);
  Add(w, 2, p.bytes);
  Add(w, 3, p.device);
}

void Write(Writer& w, const HostAllocatePacket& p) {
  AddSigned(w, 1, p.address_delta);
  Add(w, 2, p.bytes);
  Add(w, 3, p.stack);
  Add(w, 4, p.function);
  Add(w, 5, p.caller);
  Add(w, 6, p.result);
}

void Write(Writer& w, const HostFreePacket& p) {
  AddSigned(w, 1, p.address_delta);
  Add(w, 2, p.stack);
  Add(w, 3, p.function);
  Add(w, 4, p.caller);
  Add(w, 5, p.result);
}

void Write(Writer& w, const MemoryQueryPacket& p) {
  Add(w, 1, p.device);
  Add(w, 2, p.free_bytes);
  Add(w, 3, p.total_bytes);
  Add(w, 4, p.reason);
}

void Write(Writer& w, const OutOfMemoryPacket& p) {
  Add(w, 1, p.requested);
  Add(w, 2, p.allocated_total);
  Add(w, 3, p.reserved_total);
  Add(w, 4, p.device);
  Add(w, 5, p.stack);
  AddAutograd(w, 6, p.autograd);
}

void Write(Writer& w, const LabelPacket& p) {
  AddSigned(w, 1, p.address_delta);
  Add(w, 2, p.bytes);
  Add(w, 3, p.kind);
  Add(w, 4, p.name);
  Add(w, 5, p.state_key);
  Add(w, 6, p.dtype);
  AddShape(w, 7, p.shape);
  Add(w, 8, p.device);
}

void Write(Writer& w, const ModulePacket& p) {
  Add(w, 1, p.object);
  Add(w, 2, p.path);
  Add(w, 3, p.class_name);
  Add(w, 4, p.parent);
}

void Write(Writer& w, const StepPacket& p) {
  Add(w, 1, p.number);
  Add(w, 2, p.edge);
  Add(w, 3, p.optimizer);
  Add(w, 4, p.optimizer_object);
}

void Write(Writer& w, const PhaseMarkPacket& p) {
  Add(w, 1, p.name);
  Add(w, 2, p.end ? 1 : 0);
}

void Write(Writer& w, const InputTensorPacket& p) {
  Add(w, 1, p.name);
  AddSigned(w, 2, p.address_delta);
  Add(w, 3, p.bytes);
  AddShape(w, 4, p.shape);
  Add(w, 5, p.dtype);
  Add(w, 6, p.step);
  Add(w, 7, p.on_device ? 1 : 0);
  Add(w, 8, p.module_object);
}

void Write(Writer& w, const ProcessPacket& p) {
  Add(w, 1, p.pid);
  Add(w, 2, p.parent_pid);
  Add(w, 3, p.rank);
  Add(w, 4, p.local_rank);
  Add(w, 5, p.world_size);
  Add(w, 6, p.start_unix_ns);
  Add(w, 7, p.start_monotonic_ns);
  for (const std::string_view argument : p.argument) AddText(w, 8, argument, true);
  for (const std::string_view variable : p.environment) AddText(w, 9, variable, true);
  AddText(w, 10, p.host);
  AddText(w, 11, p.executable);
  AddText(w, 12, p.writer_version);
  AddText(w, 13, p.python_version);
  AddText(w, 14, p.torch_version);
  AddText(w, 15, p.working_folder);
  Add(w, 16, p.simulated ? 1 : 0);
  AddText(w, 17, p.driver_version);
  AddText(w, 18, p.cuda_runtime_version);
}

void Write(Writer& w, const DevicePacket& p) {
  Add(w, 1, p.device);
  AddText(w, 2, p.name);
  Add(w, 3, p.total_bytes);
  Add(w, 4, p.compute_major);
  Add(w, 5, p.compute_minor);
  Add(w, 6, p.multiprocessors);
  AddText(w, 7, p.uuid);
}

void Write(Writer& w, const ContextPacket& p) {
  Add(w, 1, p.device);
  Add(w, 2, p.context);
  Add(w, 3, p.destroyed ? 1 : 0);
}

void Write(Writer& w, const ThreadPacket& p) {
  Add(w, 1, p.id);
  Add(w, 2, p.system_id);
  AddText(w, 3, p.name);
}

void Write(Writer& w, const FeaturePacket& p) {
  Add(w, 1, p.name);
  Add(w, 2, p.on ? 1 : 0);
  AddText(w, 3, p.reason);
}

void Write(Writer& w, const LossPacket& p) {
  Add(w, 1, p.reason);
  Add(w, 2, p.events);
  AddText(w, 3, p.text);
}

void Write(Writer& w, const TrailerPacket& p) {
  Add(w, 1, p.events);
  Add(w, 2, p.block_allocations);
  Add(w, 3, p.block_frees);
  Add(w, 4, p.driver_allocations);
  Add(w, 5, p.lost_events);
}

constexpr size_t kMaxLengthBytes = 5;

template <typename Body>
std::span<const std::byte> Encode(Tag number, const PacketStamp& stamp, const Body& body,
                                  std::span<std::byte> buffer) noexcept {
  if (buffer.size() <= kMaxLengthBytes) return {};
  char* const begin = reinterpret_cast<char*>(buffer.data()) + kMaxLengthBytes;
  try {
    protozero::fixed_size_buffer_adaptor sink(begin, buffer.size() - kMaxLengthBytes);
    Writer packet(sink);
    Add(packet, 1, stamp.sequence_delta);
    Add(packet, 2, stamp.time_delta_ns);
    const size_t before = sink.size();
    {
      Writer inner(packet, number);
      Write(inner, body);
    }
    // The writer rolls an empty message back, but here its presence says which body it is.
    if (sink.size() == before) packet.add_message(number, "", 0);
    // The length goes right in front of the packet, into the bytes kept free for it.
    char length[kMaxLengthBytes];
    const auto used = static_cast<size_t>(protozero::write_varint(length, sink.size()));
    for (size_t i = 0; i < used; ++i)
      begin[static_cast<std::ptrdiff_t>(i) - static_cast<std::ptrdiff_t>(used)] = length[i];
    return buffer.subspan(kMaxLengthBytes - used, used + sink.size());
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace

#define VRAMTRACE_DEFINE_ENCODER(Message, number)                                                \
  std::span<const std::byte> EncodePacket(const PacketStamp& stamp, const Message##Packet& body, \
                                          std::span<std::byte> buffer) noexcept {                \
    return Encode(number, stamp, body, buffer);                                                  \
  }
VRAMTRACE_TRACE_PACKETS(VRAMTRACE_DEFINE_ENCODER)
#undef VRAMTRACE_DEFINE_ENCODER

}  // namespace vramtrace::trace
