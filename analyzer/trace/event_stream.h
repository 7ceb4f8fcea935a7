#pragma once
// The events of a trace in sequence order: chunks of several threads, merged.

#include <cstdint>
#include <memory>
#include <vector>

#include "analyzer/trace/trace_file.h"

namespace vramtrace::trace {

class EventStream {
 public:
  // Does each pass over a file count what it meets? Only the first should, or every loss counts twice.
  enum class Counting { kCount, kSilent };

  explicit EventStream(std::shared_ptr<TraceFile> file, Counting counting = Counting::kSilent);

  // The next event, valid until the next call; nullptr at the end. Table packets (String, Code, Frame, Stack,
  // Binary) come too: at the place of the packet before them.
  [[nodiscard]] const Event* Next();
  // The same, copied; false at the end. The copy's `body` is valid until the next call.
  [[nodiscard]] bool Next(Event* event) {
    const Event* next = Next();
    if (next != nullptr) *event = *next;
    return next != nullptr;
  }

 private:
  // A chunk being read. Holds the decoded head, so that heads can be compared.
  struct Cursor {
    uint64_t chunk_offset = 0;
    uint64_t packets_offset = 0;  // in the file, of the first packet
    std::vector<std::byte> buffer;
    PacketCursor packets{{}};
    ChunkClock clock;
    Event head;
    bool superseded = false;  // a chunk of events: kept ranges stand for parts of it
  };

  void OpenDueChunks();
  [[nodiscard]] bool Advance(Cursor* cursor);
  [[nodiscard]] bool Superseded(const Cursor& cursor);
  void CountSequence(const Event& event);
  void CountMissing();

  std::shared_ptr<TraceFile> file_;
  bool counting_;
  std::vector<ChunkPlace> waiting_;            // by descending base_sequence: the next to open is the last
  std::vector<std::unique_ptr<Cursor>> open_;  // a heap, the smallest sequence first
  std::unique_ptr<Cursor> current_;            // the cursor whose head was handed out
  size_t kept_ = 0;       // the first of the file's kept ranges that ends at the merge's place or later
  uint64_t missing_ = 0;  // numbers that did not come
  uint64_t dropped_ = 0;  // of those, left out on purpose
  bool ended_ = false;
  uint64_t last_sequence_ = 0;
  bool any_sequence_ = false;
};

}  // namespace vramtrace::trace
