#pragma once
// The threads that make events, and the event chunks that they own.
//
// A thread takes a lane at its first event: a chunk and counters that nobody else touches. When the thread
// ends the lane goes, with its half-full chunk, to the next new thread. Threads beyond kMaxLanes, and threads
// in the last round of their thread-local destructors, share one lane under a mutex.
//
// Closing. A thread marks its lane busy, then looks whether recording is open. The one who closes recording
// first says so, then makes every processor pass a barrier (membarrier), then waits for busy lanes: after
// that nobody writes any more, and chunks can be sealed. The hot path pays two plain stores. Where membarrier
// is missing lanes of other threads stay unsealed, which a reader accepts.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "preload/trace/chunk_writer.h"

namespace vramtrace::record {

// On a cache line of its own: lanes of different threads are written at the same time.
struct alignas(64) Lane {
  std::atomic<uint32_t> busy{0};
  std::atomic<bool> taken{false};
  // Retention looks at these. Every event of the open chunk has a greater number than `open_base`; no chunk
  // and no event under way: UINT64_MAX.
  std::atomic<uint64_t> open_base{UINT64_MAX};
  std::atomic<bool> stolen{false};
  uint32_t written_thread = 0;  // whose packets the chunk's next ones are, as a reader sees it
  trace::ChunkWriter chunk;
  // Written by the owner, read at the end.
  std::atomic<uint64_t> block_allocations{0};
  std::atomic<uint64_t> block_frees{0};
  std::atomic<uint64_t> driver_allocations{0};
  std::atomic<uint64_t> lost_events{0};
};

class Threads {
 public:
  static constexpr size_t kMaxLanes = 64;

  constexpr Threads() = default;

  // Once, when the file opens.
  void Start() noexcept;

  // The calling thread's lane, marked busy; the shared one is locked. Never null.
  [[nodiscard]] Lane* Enter() noexcept;
  void Leave(Lane* lane) noexcept;

  // Id of the calling thread's Thread packet. `*is_new` where the packet has yet to be written.
  [[nodiscard]] uint32_t ThreadId(bool* is_new) noexcept;

  // After recording was closed: waits until no other thread writes (`own`: the caller's lane, or null), at
  // most a second; then seals their chunks. False when it did not come to that.
  bool SealAll(const Lane* own) noexcept;

  // Takes the chunk of a lane whose owner is not writing: the caller may seal and close it. The owner, when
  // it comes back, finds `stolen` set and waits for the caller's lock (Retention::AwaitTheft). False where
  // the owner is busy, or the system has no barrier.
  [[nodiscard]] bool Steal(Lane* lane) noexcept;

  template <typename Function>
  void ForEachLane(Function function) noexcept {
    function(shared_);
    const size_t count = lane_count_.load(std::memory_order_acquire);
    for (size_t i = 0; i < count; ++i) function(lanes_[i]);
  }

  // Sum over all lanes.
  [[nodiscard]] uint64_t Sum(std::atomic<uint64_t> Lane::*counter) const noexcept;

 private:
  static void OnThreadExit(void* lane) noexcept;
  [[nodiscard]] Lane* TakeLane() noexcept;

  Lane lanes_[kMaxLanes];
  Lane shared_;
  std::atomic<size_t> lane_count_{0};
  std::mutex shared_mutex_;
  std::atomic<uint32_t> last_thread_id_{0};
  uint32_t exit_key_ = 0;
  std::atomic<bool> has_exit_key_{false};
  bool has_barrier_ = false;
};

// The one instance; constant-initialised, never destroyed.
[[nodiscard]] Threads& GetThreads() noexcept;

// Adds to a counter of a lane that the caller owns: a plain add, no locked instruction.
inline void Count(std::atomic<uint64_t>* counter) noexcept {
  counter->store(counter->load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

}  // namespace vramtrace::record
