#pragma once
// The chunk: the unit of a trace file. See FORMAT.md.
//
//   file   = chunk 0 | chunk 1 | ...            every chunk is `chunk_bytes` long
//   chunk  = ChunkHeader | packets | zeros      packets end at header + committed
//   packet = varint length | protobuf Packet
//
// A chunk belongs to one thread while it is open. The owner writes a packet behind the committed bytes and
// then advances `committed` with a release store: a reader, or the file after a SIGKILL, never shows half a
// packet. Zero is no valid start of a packet (its length is at least 1), so a torn tail reads as the end.

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace vramtrace::trace {

inline constexpr uint64_t kChunkMagic = 0x314b4e4843545256;  // "VRTCHNK1", little-endian
inline constexpr uint32_t kFormatMajor = 1;                  // a reader refuses a newer one
inline constexpr uint32_t kFormatMinor = 1;                  // informative
inline constexpr uint64_t kDefaultChunkBytes = 256 * 1024;

enum class ChunkKind : uint32_t {
  kTables = 1,  // interned tables, labels, process and device packets: never recycled
  kEvents = 2,  // one thread's events
  kKept = 3,  // what is kept of a range of the sequence, copied from chunks of kEvents: stands for the range
};

enum ChunkFlags : uint32_t {
  kChunkSealed = 1,    // full or ended; `checksum` covers the committed packets
  kChunkLastPart = 2,  // kKept: the range's last chunk. Set when all of its chunks are written
};

struct ChunkHeader {
  uint64_t magic;
  uint32_t format_major;
  uint32_t format_minor;
  uint32_t header_bytes;  // where packets begin
  ChunkKind kind;
  uint64_t chunk_bytes;             // the same in every chunk of a file
  uint64_t index;                   // position in the file / chunk_bytes
  std::atomic<uint64_t> committed;  // bytes of packets behind the header
  std::atomic<uint32_t> flags;      // ChunkFlags
  uint32_t checksum;                // CRC-32C of the committed bytes, when sealed
  uint32_t thread;                  // Thread packet id of the owner; 0 for tables
  uint32_t process_id;
  uint64_t base_time_ns;               // CLOCK_MONOTONIC; Packet.time_delta_ns adds up from here
  std::atomic<uint64_t> last_time_ns;  // of the newest committed packet
  uint64_t base_sequence;              // Packet.sequence_delta adds up from here
  uint64_t base_address;               // address_delta is relative to this, not accumulated
  uint64_t file_id;                    // random; the same in every chunk of a file
  uint64_t range_first;                // kKept: sequence numbers [range_first, range_last]; else 0
  uint64_t range_last;
  uint32_t part;  // kKept: place among the range's chunks, from 0
  uint8_t reserved[4];
};
static_assert(sizeof(ChunkHeader) == 128);
static_assert(offsetof(ChunkHeader, committed) == 40);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

}  // namespace vramtrace::trace
