// Any bytes as a chunk: the reader stays inside them, and hands out packets that lie in the committed part
// only.

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "preload/trace/chunk_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace vramtrace::trace;
  // A copy of exactly this size: the address sanitizer sees every step outside.
  const std::vector<uint8_t> copy(bytes, bytes + size);
  const auto all = std::as_bytes(std::span(copy));
  // The index is taken from the bytes themselves, or nearly every input would end at that check.
  const Chunk chunk = ReadChunk(all, DecodeChunkFields(all).index);
  const std::byte* const begin = all.data();
  size_t total = 0;
  PacketCursor cursor(chunk.packets);
  std::span<const std::byte> packet;
  while (cursor.Next(&packet)) {
    if (packet.empty() || packet.data() < begin || packet.data() + packet.size() > begin + size) std::abort();
    total += packet.size();
  }
  if (total > chunk.fields.committed || cursor.Offset() > chunk.packets.size()) std::abort();
  return 0;
}
