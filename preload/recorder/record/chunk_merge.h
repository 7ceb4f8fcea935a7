#pragma once
// The events of several chunks in the order of their sequence.

#include <cstddef>
#include <cstdint>

#include "preload/recorder/record/mapped_array.h"
#include "preload/recorder/record/net_effect.h"
#include "preload/trace/chunk_file.h"
#include "preload/trace/chunk_reader.h"

namespace vramtrace::record {

class ChunkMerge {
 public:
  explicit ChunkMerge(trace::ChunkFile* file) : file_(file) {}
  ~ChunkMerge();
  ChunkMerge(const ChunkMerge&) = delete;
  ChunkMerge& operator=(const ChunkMerge&) = delete;

  // Maps a chunk; its events with numbers above `after` become part of the merge. False when it cannot be
  // read.
  [[nodiscard]] bool Add(uint64_t index, uint64_t after) noexcept;

  // The next event, its views valid as long as the merge lives; false at the end.
  [[nodiscard]] bool Next(EventView* event) noexcept;

 private:
  struct Source {
    trace::ChunkMemory memory;
    uint64_t base_address;
    uint64_t after;
    uint64_t sequence;  // of `head`, or of the packet before it
    uint64_t time_ns;
    uint32_t thread;
    size_t offset;  // of the next packet among the committed bytes
    size_t committed;
    size_t packets;  // where they begin
    EventView head;
    bool ended;
  };

  void Advance(Source* source) noexcept;

  trace::ChunkFile* file_;
  MappedArray<Source> sources_;
  size_t current_ = SIZE_MAX;   // the source whose head was handed out
  uint64_t current_until_ = 0;  // the smallest number of the other sources
};

}  // namespace vramtrace::record
