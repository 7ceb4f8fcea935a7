#pragma once
// A strict reader for tests of the writer: libprotobuf for the packets, chunk_reader.h for the rest. The
// analyzer has the tolerant one.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "preload/trace/chunk_reader.h"
#include "preload/trace/vramtrace.pb.h"

namespace vramtrace::tests {

struct ReadPacket {
  v1::Packet packet;
  uint64_t chunk = 0;  // index
  uint32_t thread = 0;
  uint64_t sequence = 0;  // 0 where the packet is no event
  uint64_t time_ns = 0;
  uint64_t address = 0;  // where the body has one
};

struct ReadTrace {
  std::vector<trace::ChunkFields> chunks;  // the opened ones
  std::vector<ReadPacket> packets;         // in file order
  // Why reading stopped or what was odd: short and unused chunks are not, anything else is.
  std::vector<std::string> faults;
  bool short_chunk = false;

  [[nodiscard]] std::vector<const ReadPacket*> Of(v1::Packet::BodyCase body) const;
  // Events by sequence number.
  [[nodiscard]] std::map<uint64_t, const ReadPacket*> Events() const;
};

[[nodiscard]] std::string ReadFileBytes(const std::string& path);
[[nodiscard]] ReadTrace ReadTraceBytes(const std::string& bytes);

// Checks the rules of FORMAT.md that hold across packets: every id is defined once and where it is used,
// parents come before children, no sequence number comes twice. Returns what is wrong.
[[nodiscard]] std::vector<std::string> CheckReferences(const ReadTrace& trace);

}  // namespace vramtrace::tests
