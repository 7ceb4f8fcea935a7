// Any bytes as a packet: the decoder never crashes, and what libprotobuf accepts it reads the same way.
#include <cstdlib>

#include "analyzer/trace/decode.h"
#include "preload/trace/vramtrace.pb.h"

namespace {

using vramtrace::trace::ChunkClock;
using vramtrace::trace::DecodePacket;
using vramtrace::trace::DecodeStatus;
using vramtrace::trace::Event;
using vramtrace::trace::Raw;

constexpr uint64_t kBase = 1 << 20;

void Expect(bool holds) {
  if (!holds) std::abort();
}

void CompareBlock(const vramtrace::v1::BlockAllocate& truth, const Event& event) {
  Expect(event.address == kBase + static_cast<uint64_t>(truth.address_delta()));
  Expect(event.bytes == truth.bytes());
  Expect(event.requested == truth.requested());
  Expect(Raw(event.stack) == truth.stack());
  Expect(Raw(event.device) == truth.device());
}

void CompareQuery(const vramtrace::v1::MemoryQuery& truth, const Event& event) {
  Expect(event.free_bytes == truth.free_bytes());
  Expect(event.total_bytes == truth.total_bytes());
  Expect(Raw(event.device) == truth.device());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ChunkClock clock{10, 20, kBase, {}};
  Event event;
  const DecodeStatus status =
      DecodePacket(std::string_view(reinterpret_cast<const char*>(data), size), &clock, &event);
  vramtrace::v1::Packet truth;
  if (!truth.ParseFromArray(data, static_cast<int>(size)) || status != DecodeStatus::kDecoded) return 0;
  // A body given twice is merged by libprotobuf; the decoder takes the last. No writer does that: only what
  // libprotobuf writes again byte for byte, without fields that it does not know, is compared.
  std::string bytes;
  truth.DiscardUnknownFields();
  truth.SerializeToString(&bytes);
  if (bytes != std::string_view(reinterpret_cast<const char*>(data), size)) return 0;
  if (truth.has_block_allocate()) CompareBlock(truth.block_allocate(), event);
  if (truth.has_memory_query()) CompareQuery(truth.memory_query(), event);
  return 0;
}
