#include "tests/support/trace_builder.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <cstring>
#include <fstream>

#include "preload/trace/chunk.h"
#include "preload/trace/crc32c.h"

namespace vramtrace::testing {
namespace {

constexpr uint64_t kFileId = 0x1122334455667788;
constexpr uint64_t kEventTime = 1000;

std::string Delimited(const v1::Packet& packet) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.WriteVarint32(static_cast<uint32_t>(packet.ByteSizeLong()));
  packet.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

}  // namespace

TraceBuilder::TraceBuilder(uint64_t chunk_bytes) : chunk_bytes_(chunk_bytes) {}

TraceBuilder::Chunk& TraceBuilder::OpenChunk(bool tables) {
  for (Chunk& chunk : chunks_) {
    if (!chunk.sealed && chunk.tables == tables && (tables || chunk.thread == thread_)) return chunk;
  }
  const uint32_t thread = tables ? 0 : thread_;
  chunks_.push_back({tables, thread, thread, sequence_, time_ns_, sequence_, time_ns_, false, {}});
  return chunks_.back();
}

void TraceBuilder::Add(v1::Packet packet, bool in_tables) {
  Chunk* chunk = &OpenChunk(in_tables);
  if (!in_tables) {
    ++sequence_;
    time_ns_ += kEventTime;
    packet.set_sequence_delta(sequence_ - chunk->last_sequence);
    packet.set_time_delta_ns(time_ns_ - chunk->last_time_ns);
  }
  const std::string bytes = Delimited(packet);
  if (chunk->packets.size() + bytes.size() > chunk_bytes_ - sizeof(trace::ChunkHeader)) {
    chunk->sealed = true;
    if (!in_tables) {
      --sequence_;
      time_ns_ -= kEventTime;
    }
    return Add(std::move(packet), in_tables);
  }
  chunk->packets += bytes;
  if (in_tables) return;
  chunk->last_sequence = sequence_;
  chunk->last_time_ns = time_ns_;
}

uint32_t TraceBuilder::String(std::string_view text) {
  const auto found = strings_.find(text);
  if (found != strings_.end()) return found->second;
  const auto id = static_cast<uint32_t>(strings_.size() + 1);
  strings_.emplace(text, id);
  v1::Packet packet;
  packet.mutable_string()->set_id(id);
  packet.mutable_string()->set_text(std::string(text));
  Add(std::move(packet), true);
  return id;
}

uint32_t TraceBuilder::Stack(const std::vector<PythonFrame>& frames) {
  uint32_t parent = 0;
  for (const PythonFrame& frame : frames) {
    const auto [code, new_code] = codes_.try_emplace({frame.file, frame.name}, codes_.size() + 1);
    if (new_code) {
      v1::Packet packet;
      v1::Code* row = packet.mutable_code();
      row->set_id(code->second);
      row->set_file(String(frame.file));
      row->set_qualified_name(String(frame.name));
      row->set_first_line(frame.line);
      Add(std::move(packet), true);
    }
    const auto [level, new_frame] =
        frames_.try_emplace({code->second, frame.line, frame.module_object}, frames_.size() + 1);
    if (new_frame) {
      v1::Packet packet;
      v1::Frame* row = packet.mutable_frame();
      row->set_id(level->second);
      row->set_code(code->second);
      row->set_line(frame.line);
      row->set_module_object(frame.module_object);
      Add(std::move(packet), true);
    }
    const auto [stack, new_stack] = stacks_.try_emplace({parent, level->second}, stacks_.size() + 1);
    if (new_stack) {
      v1::Packet packet;
      v1::Stack* row = packet.mutable_stack();
      row->set_id(stack->second);
      row->set_parent(parent);
      row->set_frame(level->second);
      Add(std::move(packet), true);
    }
    parent = stack->second;
  }
  return parent;
}

void TraceBuilder::Module(uint64_t object, std::string_view path, std::string_view class_name,
                          uint64_t parent) {
  v1::Packet packet;
  v1::Module* row = packet.mutable_module();
  row->set_object(object);
  row->set_path(String(path));
  row->set_class_name(String(class_name));
  row->set_parent(parent);
  Add(std::move(packet), true);
}

void TraceBuilder::SetAutograd(const Autograd& autograd, v1::Autograd* out) {
  out->set_sequence_number(autograd.sequence_number);
  out->set_node_thread(autograd.node_thread);
  if (!autograd.operator_name.empty()) out->set_operator_name(String(autograd.operator_name));
}

void TraceBuilder::Allocate(const BlockArguments& block) {
  v1::Packet packet;
  v1::BlockAllocate* event = packet.mutable_block_allocate();
  event->set_address_delta(Delta(block.address));
  event->set_bytes(block.bytes);
  event->set_requested(block.requested);
  event->set_stack(block.stack);
  event->set_device(block.device);
  event->set_allocated_total(block.allocated_total);
  event->set_reserved_total(block.reserved_total);
  if (block.autograd.sequence_number != 0 || !block.autograd.operator_name.empty()) {
    SetAutograd(block.autograd, event->mutable_autograd());
  }
  Add(std::move(packet), false);
}

void TraceBuilder::Free(const BlockArguments& block) {
  v1::Packet packet;
  v1::BlockFree* event = packet.mutable_block_free();
  event->set_address_delta(Delta(block.address));
  event->set_bytes(block.bytes);
  event->set_stack(block.stack);
  event->set_device(block.device);
  event->set_allocated_total(block.allocated_total);
  event->set_reserved_total(block.reserved_total);
  if (block.autograd.sequence_number != 0 || !block.autograd.operator_name.empty()) {
    SetAutograd(block.autograd, event->mutable_autograd());
  }
  Add(std::move(packet), false);
}

void TraceBuilder::OutOfMemory(const BlockArguments& request) {
  v1::Packet packet;
  v1::OutOfMemory* event = packet.mutable_out_of_memory();
  event->set_requested(request.bytes);
  event->set_stack(request.stack);
  event->set_device(request.device);
  event->set_allocated_total(request.allocated_total);
  event->set_reserved_total(request.reserved_total);
  if (request.autograd.sequence_number != 0 || !request.autograd.operator_name.empty()) {
    SetAutograd(request.autograd, event->mutable_autograd());
  }
  Add(std::move(packet), false);
}

void TraceBuilder::DriverAllocate(uint64_t address, uint64_t bytes, std::string_view caller, uint32_t result,
                                  v1::MemoryKind kind) {
  v1::Packet packet;
  v1::DriverAllocate* event = packet.mutable_driver_allocate();
  event->set_address_delta(Delta(address));
  event->set_bytes(bytes);
  event->set_kind(kind);
  event->set_function(String(kind == v1::MEMORY_KIND_PHYSICAL ? "cuMemCreate" : "cudaMalloc"));
  event->set_caller(String(caller));
  event->set_result(result);
  Add(std::move(packet), false);
}

void TraceBuilder::DriverFree(uint64_t address, std::string_view caller, v1::MemoryKind kind) {
  v1::Packet packet;
  v1::DriverFree* event = packet.mutable_driver_free();
  event->set_address_delta(Delta(address));
  event->set_kind(kind);
  event->set_function(String(kind == v1::MEMORY_KIND_PHYSICAL ? "cuMemRelease" : "cudaFree"));
  event->set_caller(String(caller));
  Add(std::move(packet), false);
}

void TraceBuilder::Map(uint64_t address, uint64_t bytes, uint64_t handle) {
  v1::Packet packet;
  v1::MemoryMap* event = packet.mutable_memory_map();
  event->set_address_delta(Delta(address));
  event->set_bytes(bytes);
  event->set_handle(handle);
  Add(std::move(packet), false);
}

void TraceBuilder::Unmap(uint64_t address, uint64_t bytes) {
  v1::Packet packet;
  packet.mutable_memory_unmap()->set_address_delta(Delta(address));
  packet.mutable_memory_unmap()->set_bytes(bytes);
  Add(std::move(packet), false);
}

void TraceBuilder::Query(uint64_t free_bytes, uint64_t total_bytes, v1::MemoryQuery::Reason reason,
                         uint32_t device) {
  v1::Packet packet;
  v1::MemoryQuery* event = packet.mutable_memory_query();
  event->set_device(device);
  event->set_free_bytes(free_bytes);
  event->set_total_bytes(total_bytes);
  event->set_reason(reason);
  Add(std::move(packet), false);
}

void TraceBuilder::Label(v1::Label::Kind kind, uint64_t address, uint64_t bytes, std::string_view name,
                         std::string_view state_key, std::string_view dtype) {
  v1::Packet packet;
  v1::Label* event = packet.mutable_label();
  event->set_address_delta(Delta(address));
  event->set_bytes(bytes);
  event->set_kind(kind);
  event->set_name(String(name));
  if (!state_key.empty()) event->set_state_key(String(state_key));
  event->set_dtype(String(dtype));
  event->add_shape(static_cast<int64_t>(bytes / 4));
  Add(std::move(packet), false);
}

void TraceBuilder::Input(std::string_view name, uint64_t address, uint64_t bytes,
                         const std::vector<int64_t>& shape, uint64_t step) {
  v1::Packet packet;
  v1::InputTensor* event = packet.mutable_input_tensor();
  event->set_name(String(name));
  event->set_address_delta(Delta(address));
  event->set_bytes(bytes);
  for (const int64_t dimension : shape) event->add_shape(dimension);
  event->set_dtype(String("int64"));
  event->set_step(step);
  event->set_on_device(true);
  Add(std::move(packet), false);
}

void TraceBuilder::Phase(std::string_view name, bool end) {
  v1::Packet packet;
  packet.mutable_phase()->set_name(String(name));
  packet.mutable_phase()->set_end(end);
  Add(std::move(packet), /*in_tables=*/false);
}

void TraceBuilder::Step(uint64_t number, bool end, std::string_view optimizer) {
  v1::Packet packet;
  v1::Step* event = packet.mutable_step();
  event->set_number(number);
  event->set_edge(end ? v1::Step::EDGE_OPTIMIZER_END : v1::Step::EDGE_OPTIMIZER_BEGIN);
  event->set_optimizer(String(optimizer));
  Add(std::move(packet), false);
}

void TraceBuilder::HostAllocate(uint64_t address, uint64_t bytes) {
  v1::Packet packet;
  packet.mutable_host_allocate()->set_address_delta(Delta(address));
  packet.mutable_host_allocate()->set_bytes(bytes);
  Add(std::move(packet), false);
}

void TraceBuilder::AddProcess(const v1::Process& process) {
  v1::Packet packet;
  *packet.mutable_process() = process;
  Add(std::move(packet), true);
}

void TraceBuilder::AddDevice(const v1::Device& device) {
  v1::Packet packet;
  *packet.mutable_device() = device;
  Add(std::move(packet), true);
}

void TraceBuilder::AddFeature(std::string_view name, bool on, std::string_view reason) {
  v1::Packet packet;
  packet.mutable_feature()->set_name(String(name));
  packet.mutable_feature()->set_on(on);
  packet.mutable_feature()->set_reason(std::string(reason));
  Add(std::move(packet), true);
}

void TraceBuilder::AddTrailer() {
  v1::Packet packet;
  packet.mutable_trailer()->set_events(sequence_);
  Add(std::move(packet), true);
}

void TraceBuilder::SetThread(uint32_t thread) { thread_ = thread; }

void TraceBuilder::HandChunkOn(uint32_t thread) {
  v1::Packet packet;
  packet.mutable_thread()->set_id(thread);
  Chunk& chunk = OpenChunk(false);
  chunk.packets += Delimited(packet);
  chunk.thread = thread;
  thread_ = thread;
}

void TraceBuilder::SealChunks() {
  for (Chunk& chunk : chunks_) chunk.sealed = true;
}

std::string TraceBuilder::HeaderOf(const Chunk& chunk, uint64_t index) const {
  trace::ChunkHeader header{};
  header.magic = trace::kChunkMagic;
  header.format_major = trace::kFormatMajor;
  header.format_minor = trace::kFormatMinor;
  header.header_bytes = sizeof(trace::ChunkHeader);
  header.kind = chunk.tables ? trace::ChunkKind::kTables : trace::ChunkKind::kEvents;
  header.chunk_bytes = chunk_bytes_;
  header.index = index;
  header.committed = chunk.packets.size();
  header.flags = chunk.sealed ? uint32_t{trace::kChunkSealed} : 0;
  header.checksum = chunk.sealed ? trace::Crc32c(0, chunk.packets.data(), chunk.packets.size()) : 0;
  header.thread = chunk.first_thread;
  header.process_id = 0;
  header.base_time_ns = chunk.base_time_ns;
  header.last_time_ns = chunk.last_time_ns;
  header.base_sequence = chunk.base_sequence;
  header.base_address = kBaseAddress;
  header.file_id = kFileId;
  std::string bytes(sizeof(header), '\0');
  std::memcpy(bytes.data(), &header, sizeof(header));
  return bytes;
}

std::string TraceBuilder::Bytes() {
  std::string bytes;
  uint64_t index = 0;
  for (const bool tables : {true, false}) {
    for (const Chunk& chunk : chunks_) {
      if (chunk.tables != tables) continue;
      std::string whole = HeaderOf(chunk, index++) + chunk.packets;
      whole.resize(chunk_bytes_, '\0');
      bytes += whole;
    }
  }
  return bytes;
}

void TraceBuilder::Write(const std::string& path) { std::ofstream(path, std::ios::binary) << Bytes(); }

}  // namespace vramtrace::testing
