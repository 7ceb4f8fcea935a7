#pragma once
// Reading a chunk out of bytes that nobody trusts: shared by the analyzer's tolerant reader and the tests.
// Header-only; works on memory, knows nothing of files and nothing of libprotobuf.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "preload/trace/chunk.h"
#include "preload/trace/crc32c.h"

namespace vramtrace::trace {

// ChunkHeader as plain values.
struct ChunkFields {
  uint64_t magic = 0;
  uint32_t format_major = 0;
  uint32_t format_minor = 0;
  uint32_t header_bytes = 0;
  ChunkKind kind{};
  uint64_t chunk_bytes = 0;
  uint64_t index = 0;
  uint64_t committed = 0;
  uint32_t flags = 0;
  uint32_t checksum = 0;
  uint32_t thread = 0;
  uint32_t process_id = 0;
  uint64_t base_time_ns = 0;
  uint64_t last_time_ns = 0;
  uint64_t base_sequence = 0;
  uint64_t base_address = 0;
  uint64_t file_id = 0;
  uint64_t range_first = 0;
  uint64_t range_last = 0;
  uint32_t part = 0;

  [[nodiscard]] bool Sealed() const { return (flags & kChunkSealed) != 0; }
};

enum class ChunkState {
  kGood,         // packets are all there is; not sealed, or sealed and the checksum agrees
  kUnused,       // preallocated and never opened: zeros where the magic would be
  kShort,        // the file ends inside the chunk: packets up to there
  kBadMagic,     // not a chunk of a trace
  kNewerMajor,   // written by a newer vramtrace: refuse the file
  kBadGeometry,  // header_bytes, chunk_bytes, index or committed make no sense
  kBadChecksum,  // sealed, and the packets are not those that were sealed
};

struct Chunk {
  ChunkState state = ChunkState::kUnused;
  ChunkFields fields;
  // What may be read as packets: committed bytes, less where the file ends before them. For kBadChecksum the
  // bytes are handed out too; each packet that parses may still be wrong.
  std::span<const std::byte> packets;
};

// `bytes` begins with a chunk header. Fewer than sizeof(ChunkHeader) bytes read as far as they go.
inline ChunkFields DecodeChunkFields(std::span<const std::byte> bytes) {
  std::byte raw[sizeof(ChunkHeader)] = {};
  const size_t present = bytes.size() < sizeof(raw) ? bytes.size() : sizeof(raw);
  if (present > 0) std::memcpy(raw, bytes.data(), present);  // an empty span may have no address
  const auto read = [&raw](size_t offset, auto* value) { std::memcpy(value, raw + offset, sizeof(*value)); };
  ChunkFields fields;
  read(offsetof(ChunkHeader, magic), &fields.magic);
  read(offsetof(ChunkHeader, format_major), &fields.format_major);
  read(offsetof(ChunkHeader, format_minor), &fields.format_minor);
  read(offsetof(ChunkHeader, header_bytes), &fields.header_bytes);
  read(offsetof(ChunkHeader, kind), &fields.kind);
  read(offsetof(ChunkHeader, chunk_bytes), &fields.chunk_bytes);
  read(offsetof(ChunkHeader, index), &fields.index);
  read(offsetof(ChunkHeader, committed), &fields.committed);
  read(offsetof(ChunkHeader, flags), &fields.flags);
  read(offsetof(ChunkHeader, checksum), &fields.checksum);
  read(offsetof(ChunkHeader, thread), &fields.thread);
  read(offsetof(ChunkHeader, process_id), &fields.process_id);
  read(offsetof(ChunkHeader, base_time_ns), &fields.base_time_ns);
  read(offsetof(ChunkHeader, last_time_ns), &fields.last_time_ns);
  read(offsetof(ChunkHeader, base_sequence), &fields.base_sequence);
  read(offsetof(ChunkHeader, base_address), &fields.base_address);
  read(offsetof(ChunkHeader, file_id), &fields.file_id);
  read(offsetof(ChunkHeader, range_first), &fields.range_first);
  read(offsetof(ChunkHeader, range_last), &fields.range_last);
  read(offsetof(ChunkHeader, part), &fields.part);
  return fields;
}

// Limits of what a header may claim, so that a corrupted one cannot make a reader allocate or seek wildly.
inline constexpr uint64_t kMinChunkBytes = 4096;
inline constexpr uint64_t kMaxChunkBytes = uint64_t{1} << 30;

// Reads the chunk at the front of `bytes`; `bytes` is the file from this chunk's offset on (or less, where
// the file ends). `index` is the chunk's expected position.
inline Chunk ReadChunk(std::span<const std::byte> bytes, uint64_t index) {
  Chunk chunk;
  chunk.fields = DecodeChunkFields(bytes);
  const ChunkFields& fields = chunk.fields;
  // The magic is written last when a chunk is opened: without it nothing in the chunk counts.
  if (fields.magic == 0) return chunk;
  if (bytes.size() < sizeof(ChunkHeader)) {
    chunk.state = ChunkState::kShort;
    return chunk;
  }
  if (fields.magic != kChunkMagic) {
    chunk.state = ChunkState::kBadMagic;
    return chunk;
  }
  if (fields.format_major > kFormatMajor) {
    chunk.state = ChunkState::kNewerMajor;
    return chunk;
  }
  if (fields.header_bytes < sizeof(ChunkHeader) || fields.chunk_bytes < kMinChunkBytes ||
      fields.chunk_bytes > kMaxChunkBytes || fields.header_bytes > fields.chunk_bytes ||
      fields.committed > fields.chunk_bytes - fields.header_bytes || fields.index != index) {
    chunk.state = ChunkState::kBadGeometry;
    return chunk;
  }
  const std::span<const std::byte> body = bytes.subspan(
      bytes.size() < fields.header_bytes ? bytes.size() : static_cast<size_t>(fields.header_bytes));
  if (body.size() < fields.committed) {
    chunk.state = ChunkState::kShort;
    chunk.packets = body;
    return chunk;
  }
  chunk.packets = body.first(static_cast<size_t>(fields.committed));
  const bool agrees =
      !fields.Sealed() || Crc32c(0, chunk.packets.data(), chunk.packets.size()) == fields.checksum;
  chunk.state = agrees ? ChunkState::kGood : ChunkState::kBadChecksum;
  return chunk;
}

// Walks the length-delimited packets of a chunk.
class PacketCursor {
 public:
  explicit PacketCursor(std::span<const std::byte> packets) : rest_(packets), total_(packets.size()) {}

  // The next packet's bytes, without its length. False at the end, or where the bytes stop making sense:
  // a zero length, a length that runs over the end (Torn()).
  [[nodiscard]] bool Next(std::span<const std::byte>* packet) {
    uint64_t length = 0;
    size_t used = 0;
    for (int shift = 0;; shift += 7) {
      if (used == rest_.size() || shift > 28) return false;
      const auto byte = static_cast<uint64_t>(rest_[used++]);
      length |= (byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    if (length == 0 || length > rest_.size() - used) return false;
    *packet = rest_.subspan(used, static_cast<size_t>(length));
    rest_ = rest_.subspan(used + static_cast<size_t>(length));
    return true;
  }

  // Bytes consumed by whole packets.
  [[nodiscard]] size_t Offset() const { return total_ - rest_.size(); }
  // After Next() returned false: bytes are left that are no whole packet.
  [[nodiscard]] bool Torn() const { return !rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
  size_t total_;
};

}  // namespace vramtrace::trace
