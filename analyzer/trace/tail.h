#pragma once
// Reads a trace while it is written: every poll hands out the packets that were committed since the last one.
// A recorder maps its file, so its time of change means little; what counts is each chunk's `committed`,
// which is stored after its packets (chunk.h).

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "analyzer/trace/decode.h"
#include "analyzer/trace/event.h"
#include "analyzer/trace/result.h"
#include "preload/trace/chunk_reader.h"

namespace vramtrace::trace {

class TraceTail {
 public:
  explicit TraceTail(std::string path) : path_(std::move(path)) {}

  // Events in the order of their sequence numbers within this poll; packets without one stand where their
  // chunk stands, tables before events. `body` is valid inside the call. The answer is how many there were;
  // an error is a file that cannot be read or is no trace, said once the file has a first byte.
  [[nodiscard]] Result<uint64_t> Poll(const std::function<void(const Event&)>& use);

  // Of the newest packet that was read; CLOCK_MONOTONIC.
  [[nodiscard]] uint64_t last_time_ns() const { return last_time_ns_; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  // How far a chunk has been read.
  struct Place {
    uint64_t base_time_ns = 0;  // of the chunk that was there
    uint64_t base_sequence = 0;
    uint64_t read = 0;  // bytes of packets
    ChunkClock clock{};
    bool finished = false;  // sealed and read to its end
  };
  struct Batch {
    std::vector<std::byte> bytes;
    std::vector<Event> events;
  };

  [[nodiscard]] bool ReadChunkAt(int descriptor, uint64_t offset, Batch* batch);

  std::string path_;
  uint64_t chunk_bytes_ = 0;  // 0: the first header was not there yet
  uint64_t file_id_ = 0;
  std::map<uint64_t, Place> places_;  // by offset
  uint64_t last_time_ns_ = 0;
};

}  // namespace vramtrace::trace
