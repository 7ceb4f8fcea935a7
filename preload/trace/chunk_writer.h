#pragma once
// Appends packets to one open chunk. One owner at a time; a reader of the file may look on.

#include <cstddef>
#include <cstdint>
#include <span>

#include "preload/trace/chunk.h"
#include "preload/trace/chunk_file.h"
#include "preload/trace/encoder.h"

namespace vramtrace::trace {

// What a chunk's header says besides its place.
struct ChunkIdentity {
  ChunkKind kind = ChunkKind::kEvents;
  uint32_t thread = 0;
  uint32_t process_id = 0;
  uint64_t chunk_bytes = 0;
  uint64_t file_id = 0;
  uint64_t base_time_ns = 0;
  uint64_t base_sequence = 0;
  uint64_t base_address = 0;
  uint64_t range_first = 0;  // kKept only
  uint64_t range_last = 0;
  uint32_t part = 0;
};

class ChunkWriter {
 public:
  constexpr ChunkWriter() = default;

  // Writes the header; the magic comes last, so that a process killed in here leaves an unused chunk.
  [[nodiscard]] FileStatus Open(const ChunkMemory& memory, const ChunkIdentity& identity) noexcept;

  // Moves what an unfiled chunk holds into `memory`, a chunk of a file, and goes on there.
  [[nodiscard]] FileStatus MoveInto(const ChunkMemory& memory, uint32_t process_id) noexcept;

  [[nodiscard]] bool IsOpen() const noexcept { return memory_.bytes != nullptr; }
  [[nodiscard]] size_t Room() const noexcept { return static_cast<size_t>(limit_ - cursor_); }
  [[nodiscard]] const ChunkMemory& Memory() const noexcept { return memory_; }

  // The stamp of a packet: an event's sequence number and time, or the time alone (sequence 0).
  // Time never runs backwards within a chunk.
  [[nodiscard]] PacketStamp Stamp(uint64_t sequence, uint64_t time_ns) const noexcept {
    return {sequence == 0 ? 0 : sequence - last_sequence_,
            time_ns > last_time_ns_ ? time_ns - last_time_ns_ : 0};
  }
  [[nodiscard]] int64_t AddressDelta(uint64_t address) const noexcept {
    return static_cast<int64_t>(address - base_address_);
  }

  // Appends a packet that was encoded with `stamp`, and commits it. The caller has checked Room().
  [[nodiscard]] FileStatus Append(std::span<const std::byte> packet, const PacketStamp& stamp) noexcept;

  // Marks the chunk complete, with its checksum; `also`: further flags.
  [[nodiscard]] FileStatus Seal(uint32_t also = 0) noexcept;

  // Numbers that the chunk's packets lie between.
  [[nodiscard]] uint64_t BaseSequence() const noexcept;
  [[nodiscard]] uint64_t LastSequence() const noexcept { return last_sequence_; }

  // Seals nothing, gives the memory back.
  void Close() noexcept;

 private:
  [[nodiscard]] ChunkHeader* Header() const noexcept;

  ChunkMemory memory_;
  std::byte* cursor_ = nullptr;
  std::byte* limit_ = nullptr;
  uint64_t committed_ = 0;
  uint64_t last_sequence_ = 0;
  uint64_t last_time_ns_ = 0;
  uint64_t base_address_ = 0;
  uint64_t chunk_bytes_ = 0;
};

// A random number for ChunkHeader::file_id.
[[nodiscard]] uint64_t NewFileId() noexcept;

// Memory for a chunk before there is a file. Null when there is none.
[[nodiscard]] std::byte* MapUnfiledChunk(uint64_t chunk_bytes) noexcept;

}  // namespace vramtrace::trace
