#include "tests/unit/trace_reading.h"

#include <fstream>
#include <set>
#include <sstream>

namespace vramtrace::tests {
namespace {

using trace::ChunkState;

// The value of a field of the body, by name, 0 where there is none.
template <typename Get>
auto BodyField(const v1::Packet& packet, const std::string& name, Get get) -> decltype(get(packet, nullptr)) {
  const auto* const reflection = packet.GetReflection();
  const auto* const body =
      reflection->GetOneofFieldDescriptor(packet, packet.GetDescriptor()->FindOneofByName("body"));
  if (body == nullptr) return {};
  const google::protobuf::Message& message = reflection->GetMessage(packet, body);
  const auto* const field = message.GetDescriptor()->FindFieldByName(name);
  if (field == nullptr) return {};
  return get(message, field);
}

int64_t AddressDelta(const v1::Packet& packet) {
  return BodyField(
      packet, "address_delta",
      [](const google::protobuf::Message& message, const google::protobuf::FieldDescriptor* field) {
        return field == nullptr ? int64_t{0} : message.GetReflection()->GetInt64(message, field);
      });
}

void ReadChunkPackets(const trace::Chunk& chunk, ReadTrace* trace) {
  uint32_t thread = chunk.fields.thread;
  uint64_t sequence = chunk.fields.base_sequence;
  uint64_t time_ns = chunk.fields.base_time_ns;
  trace::PacketCursor cursor(chunk.packets);
  std::span<const std::byte> bytes;
  while (cursor.Next(&bytes)) {
    ReadPacket read;
    if (!read.packet.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      trace->faults.push_back("a packet does not parse");
      return;
    }
    sequence += read.packet.sequence_delta();
    time_ns += read.packet.time_delta_ns();
    if (chunk.fields.kind == trace::ChunkKind::kEvents && read.packet.has_thread()) {
      thread = read.packet.thread().id();
    }
    read.chunk = chunk.fields.index;
    read.thread = thread;
    read.sequence = read.packet.sequence_delta() == 0 ? 0 : sequence;
    read.time_ns = time_ns;
    read.address = chunk.fields.base_address + static_cast<uint64_t>(AddressDelta(read.packet));
    trace->packets.push_back(std::move(read));
  }
  if (cursor.Torn() && chunk.state != ChunkState::kShort)
    trace->faults.push_back("a torn packet was committed");
}

}  // namespace

std::vector<const ReadPacket*> ReadTrace::Of(v1::Packet::BodyCase body) const {
  std::vector<const ReadPacket*> found;
  for (const ReadPacket& packet : packets) {
    if (packet.packet.body_case() == body) found.push_back(&packet);
  }
  return found;
}

std::map<uint64_t, const ReadPacket*> ReadTrace::Events() const {
  std::map<uint64_t, const ReadPacket*> events;
  for (const ReadPacket& packet : packets) {
    if (packet.sequence != 0) events.emplace(packet.sequence, &packet);
  }
  return events;
}

std::string ReadFileBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

ReadTrace ReadTraceBytes(const std::string& bytes) {
  ReadTrace trace;
  const std::span<const std::byte> all = std::as_bytes(std::span(bytes.data(), bytes.size()));
  uint64_t chunk_bytes = trace::kDefaultChunkBytes;
  for (uint64_t offset = 0, index = 0; offset < all.size(); offset += chunk_bytes, ++index) {
    const trace::Chunk chunk = trace::ReadChunk(all.subspan(offset), index);
    switch (chunk.state) {
      case ChunkState::kUnused:
        continue;
      case ChunkState::kShort:
        trace.short_chunk = true;
        break;
      case ChunkState::kGood:
        break;
      default:
        trace.faults.push_back("chunk " + std::to_string(index) + " is in state " +
                               std::to_string(static_cast<int>(chunk.state)));
        return trace;
    }
    if (chunk.packets.empty() && chunk.state == ChunkState::kShort) break;
    chunk_bytes = chunk.fields.chunk_bytes;
    trace.chunks.push_back(chunk.fields);
    ReadChunkPackets(chunk, &trace);
  }
  return trace;
}

std::vector<std::string> CheckReferences(const ReadTrace& trace) {
  std::vector<std::string> wrong;
  std::map<std::string, std::set<uint32_t>> defined = {{"string", {}}, {"code", {}},   {"frame", {}},
                                                       {"stack", {}},  {"binary", {}}, {"thread", {}}};
  for (const ReadPacket& read : trace.packets) {
    const v1::Packet& p = read.packet;
    const auto define = [&](const char* kind, uint32_t id) {
      if (id == 0) wrong.push_back(std::string(kind) + " with id 0");
      if (!defined[kind].insert(id).second) wrong.push_back(std::string(kind) + " defined twice");
    };
    if (p.has_string()) define("string", p.string().id());
    if (p.has_code()) define("code", p.code().id());
    if (p.has_frame()) define("frame", p.frame().id());
    if (p.has_stack()) define("stack", p.stack().id());
    if (p.has_binary()) define("binary", p.binary().id());
    if (p.has_thread() && p.thread().system_id() != 0) define("thread", p.thread().id());
  }
  // Which table the ids of a field refer to.
  const std::map<std::string, std::string> tables = {
      {"file", "string"},          {"qualified_name", "string"}, {"code", "code"},
      {"binary", "binary"},        {"parent", "stack"},          {"frame", "frame"},
      {"path", "string"},          {"stack", "stack"},           {"function", "string"},
      {"caller", "string"},        {"name", "string"},           {"state_key", "string"},
      {"dtype", "string"},         {"class_name", "string"},     {"optimizer", "string"},
      {"operator_name", "string"}, {"thread", "thread"},
  };
  std::set<uint64_t> sequences;
  for (const ReadPacket& read : trace.packets) {
    if (read.sequence != 0 && !sequences.insert(read.sequence).second) {
      wrong.push_back("sequence number " + std::to_string(read.sequence) + " comes twice");
    }
    if (read.packet.has_stack() && read.packet.stack().parent() >= read.packet.stack().id()) {
      wrong.push_back("a stack's parent does not come before it");
    }
    if (read.thread != 0 && !defined["thread"].contains(read.thread))
      wrong.push_back("a thread is not defined");
    const auto* const reflection = read.packet.GetReflection();
    const auto* const body_field = reflection->GetOneofFieldDescriptor(
        read.packet, read.packet.GetDescriptor()->FindOneofByName("body"));
    if (body_field == nullptr) {
      wrong.push_back("a packet without a body");
      continue;
    }
    const google::protobuf::Message& body = reflection->GetMessage(read.packet, body_field);
    for (const auto& [name, table] : tables) {
      const auto* const field = body.GetDescriptor()->FindFieldByName(name);
      if (field == nullptr || field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_UINT32)
        continue;
      const uint32_t id = body.GetReflection()->GetUInt32(body, field);
      if (id != 0 && !defined[table].contains(id)) {
        std::ostringstream what;
        what << body.GetDescriptor()->name() << "." << name << " refers to " << table << " " << id
             << ", which is not defined";
        wrong.push_back(what.str());
      }
    }
  }
  return wrong;
}

}  // namespace vramtrace::tests
