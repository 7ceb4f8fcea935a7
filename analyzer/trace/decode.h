#pragma once
// Packet bytes to Event. Decoded by hand with protozero rather than into libprotobuf objects: a trace is
// mostly block events, and they are read more than once (see analyzer/README.md for the measurement).

#include <cstdint>
#include <string_view>

#include "analyzer/trace/event.h"

namespace vramtrace::trace {

// What the packets of one chunk add up from.
struct ChunkClock {
  uint64_t sequence = 0;      // of the packet before, at first the header's base_sequence
  uint64_t time_ns = 0;       // likewise
  uint64_t base_address = 0;  // not accumulated
  ThreadId thread =
      ThreadId::kNone;  // the header's, then that of the last Thread packet; kNone: a table chunk
};

enum class DecodeStatus {
  kDecoded,
  kUnknown,    // valid, but of a kind that this version does not know
  kMalformed,  // not a packet
};

// The packet's kind, place and `body`. Of bodies only a Thread's is looked into: in a chunk of events it says
// whose the packets behind it are.
[[nodiscard]] DecodeStatus DecodeHead(std::string_view packet, ChunkClock* clock, Event* event);

// Decodes `packet` into `*event` and advances `*clock`. Fields that the packet lacks are zero. The clock also
// advances for an unknown packet, which may carry deltas.
[[nodiscard]] DecodeStatus DecodePacket(std::string_view packet, ChunkClock* clock, Event* event);

}  // namespace vramtrace::trace
