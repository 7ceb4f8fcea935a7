#include "tests/preload/recorded.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <span>

#include "preload/trace/chunk_reader.h"

namespace vramtrace::tests {
namespace {

template <typename T>
void Put(std::vector<T>* table, uint32_t id, const T& value) {
  if (table->size() <= id) table->resize(id + 1);
  (*table)[id] = value;
}

template <typename T>
const T& At(const std::vector<T>& table, uint32_t id) {
  static const T none{};
  return id < table.size() ? table[id] : none;
}

// The body's address_delta, where it has one.
bool AddressDelta(const v1::Packet& packet, int64_t* delta) {
  const auto* body = packet.GetDescriptor()->FindOneofByName("body");
  const auto* field = packet.GetReflection()->GetOneofFieldDescriptor(packet, body);
  if (field == nullptr) return false;
  const auto& message = packet.GetReflection()->GetMessage(packet, field);
  const auto* address = message.GetDescriptor()->FindFieldByName("address_delta");
  if (address == nullptr) return false;
  *delta = message.GetReflection()->GetInt64(message, address);
  return true;
}

}  // namespace

Recorded::Recorded(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    error = "cannot open " + path;
    return;
  }
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  uint64_t offset = 0;
  for (uint64_t index = 0; offset < bytes.size(); ++index) {
    const auto rest = std::as_bytes(std::span(bytes)).subspan(offset);
    const trace::Chunk chunk = trace::ReadChunk(rest, index);
    if (chunk.state == trace::ChunkState::kUnused) break;
    if (chunk.state != trace::ChunkState::kGood) {
      error = "chunk " + std::to_string(index) + " is not good";
      return;
    }
    uint64_t sequence = chunk.fields.base_sequence;
    trace::PacketCursor cursor(chunk.packets);
    std::span<const std::byte> body;
    while (cursor.Next(&body)) {
      RecordedPacket recorded;
      if (!recorded.packet.ParseFromArray(body.data(), static_cast<int>(body.size()))) {
        error = "a packet does not parse";
        return;
      }
      const v1::Packet& packet = recorded.packet;
      if (packet.sequence_delta() != 0) recorded.sequence = sequence += packet.sequence_delta();
      int64_t delta = 0;
      if (AddressDelta(packet, &delta))
        recorded.address = chunk.fields.base_address + static_cast<uint64_t>(delta);
      recorded.thread = chunk.fields.thread;
      if (packet.has_string()) Put(&strings_, packet.string().id(), packet.string().text());
      if (packet.has_code()) Put(&codes_, packet.code().id(), packet.code());
      if (packet.has_frame()) Put(&frames_, packet.frame().id(), packet.frame());
      if (packet.has_stack()) Put(&stacks_, packet.stack().id(), packet.stack());
      packets.push_back(std::move(recorded));
    }
    offset += chunk.fields.chunk_bytes;
  }
  std::stable_sort(packets.begin(), packets.end(),
                   [](const RecordedPacket& a, const RecordedPacket& b) { return a.sequence < b.sequence; });
}

std::string Recorded::Text(uint32_t string_id) const { return At(strings_, string_id); }

std::vector<RecordedFrame> Recorded::Stack(uint32_t stack_id) const {
  std::vector<RecordedFrame> result;
  for (uint32_t id = stack_id; id != 0; id = At(stacks_, id).parent()) {
    const v1::Frame& frame = At(frames_, At(stacks_, id).frame());
    const v1::Code& code = At(codes_, frame.code());
    result.push_back({.file = Text(code.file()),
                      .name = Text(code.qualified_name()),
                      .line = frame.line(),
                      .module_object = frame.module_object(),
                      .native = frame.pc() != 0});
  }
  return result;
}

}  // namespace vramtrace::tests
