#pragma once

#include <cstdint>

#include "analyzer/allocator/units.h"

namespace vramtrace::allocator {

enum class EventId : std::uint64_t {};

// The events with which the allocator waits for other streams before it takes a block back. How far a stream
// has come is not derivable from sizes: it is recorded, or assumed.
class StreamEvents {
 public:
  virtual ~StreamEvents() = default;

  [[nodiscard]] virtual EventId Record(StreamId stream) = 0;
  // Asked once for the oldest event of each stream at the start of every allocation, and again for the next
  // one while the answer is true.
  [[nodiscard]] virtual bool Ready(EventId event) = 0;
  // The allocator waits for it, which it does before it gives up: a wait always succeeds.
  virtual void Synchronize(EventId event) = 0;
};

// Streams that are done by the time anybody asks: the least memory a run can take.
class FinishedStreams final : public StreamEvents {
 public:
  [[nodiscard]] EventId Record(StreamId) override { return EventId{next_++}; }
  [[nodiscard]] bool Ready(EventId) override { return true; }
  void Synchronize(EventId) override {}

 private:
  std::uint64_t next_ = 0;
};

}  // namespace vramtrace::allocator
