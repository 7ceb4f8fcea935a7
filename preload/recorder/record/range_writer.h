#pragma once
// Writes what is kept of a range of the sequence to chunks of its own (ChunkKind::kKept). The range stands
// for the chunks that it was copied from as soon as its last chunk is marked, and not before: whatever
// instant the process is killed at, a reader finds either the old chunks or the whole range.

#include <cstdint>

#include "preload/recorder/record/mapped_array.h"
#include "preload/recorder/record/net_effect.h"
#include "preload/trace/chunk_writer.h"

namespace vramtrace::record {

class RangeWriter {
 public:
  struct Identity {
    trace::ChunkFile* file = nullptr;
    uint64_t file_id = 0;
    uint32_t process_id = 0;
    uint64_t first = 0;  // the range
    uint64_t last = 0;
  };

  // `chunks`: where the places of the chunks go.
  RangeWriter(const Identity& identity, MappedArray<uint32_t>* chunks)
      : identity_(identity), chunks_(chunks) {}
  ~RangeWriter();
  RangeWriter(const RangeWriter&) = delete;
  RangeWriter& operator=(const RangeWriter&) = delete;

  // First of all, where events were left out.
  void Begin(const trace::DroppedPacket& dropped) noexcept;
  // `left_out`: bits of fields that are not copied.
  void Add(const EventView& event, uint32_t left_out = 0) noexcept;
  // Completes the range. False when something failed on the way: its chunks are given back, nothing was
  // replaced.
  [[nodiscard]] bool Finish() noexcept;

 private:
  [[nodiscard]] bool Prepare(uint64_t sequence, uint64_t time_ns, uint32_t thread, uint64_t address) noexcept;
  [[nodiscard]] bool Open(uint64_t sequence, uint64_t time_ns, uint32_t thread, uint64_t address) noexcept;
  void Undo() noexcept;

  Identity identity_;
  MappedArray<uint32_t>* chunks_;
  trace::ChunkWriter chunk_;
  uint32_t thread_ = 0;
  bool failed_ = false;
};

}  // namespace vramtrace::record
