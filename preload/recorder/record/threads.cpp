#include "preload/recorder/record/threads.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <type_traits>

namespace vramtrace::record {
namespace {

struct ThreadState {
  Lane* lane = nullptr;
  uint32_t id = 0;
  bool ended = false;  // its lane was handed on; what still comes uses the shared one
};

// Initial-exec: one load off the thread pointer; the dynamic model would call __tls_get_addr, which may
// allocate.
__attribute__((tls_model("initial-exec"))) constinit thread_local ThreadState thread_state;

static_assert(std::is_trivially_destructible_v<ThreadState>);
static_assert(std::is_trivially_destructible_v<Threads>, "hooks run after static destructors");

constinit Threads threads;

int Membarrier(int command) { return static_cast<int>(syscall(SYS_membarrier, command, 0, 0)); }

}  // namespace

Threads& GetThreads() noexcept { return threads; }

void Threads::Start() noexcept {
  pthread_key_t key = 0;
  if (pthread_key_create(&key, OnThreadExit) == 0) {
    exit_key_ = key;
    has_exit_key_.store(true, std::memory_order_release);
  }
  has_barrier_ = Membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

Lane* Threads::TakeLane() noexcept {
  for (;;) {
    const size_t count = lane_count_.load(std::memory_order_acquire);
    for (size_t i = 0; i < count; ++i) {
      bool free = false;
      if (!lanes_[i].taken.load(std::memory_order_relaxed) &&
          lanes_[i].taken.compare_exchange_strong(free, true, std::memory_order_acquire)) {
        return &lanes_[i];
      }
    }
    if (count == kMaxLanes) return nullptr;
    size_t expected = count;
    // Whoever counts one up looks again: others may take the new lane first.
    lane_count_.compare_exchange_strong(expected, count + 1, std::memory_order_acq_rel);
  }
}

void Threads::OnThreadExit(void* lane) noexcept {
  thread_state.lane = nullptr;
  thread_state.ended = true;
  static_cast<Lane*>(lane)->taken.store(false, std::memory_order_release);
}

Lane* Threads::Enter() noexcept {
  ThreadState& state = thread_state;
  Lane* lane = state.lane;
  if (lane == nullptr && !state.ended && has_exit_key_.load(std::memory_order_acquire)) {
    lane = TakeLane();
    // Without a destructor the lane would never come back.
    if (lane != nullptr && pthread_setspecific(exit_key_, lane) != 0) {
      lane->taken.store(false, std::memory_order_release);
      lane = nullptr;
    }
    state.lane = lane;
  }
  if (lane == nullptr) {
    shared_mutex_.lock();
    lane = &shared_;
  }
  lane->busy.store(1, std::memory_order_relaxed);
  // The closer's membarrier does the processor's part.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return lane;
}

void Threads::Leave(Lane* lane) noexcept {
  lane->busy.store(0, std::memory_order_release);
  if (lane == &shared_) shared_mutex_.unlock();
}

uint32_t Threads::ThreadId(bool* is_new) noexcept {
  ThreadState& state = thread_state;
  *is_new = state.id == 0;
  if (*is_new) state.id = last_thread_id_.fetch_add(1, std::memory_order_relaxed) + 1;
  return state.id;
}

bool Threads::SealAll(const Lane* own) noexcept {
  if (!has_barrier_ || Membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0) return false;
  int waited_ms = 0;
  const auto seal = [own, &waited_ms](Lane& lane) {
    constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 1'000'000};
    for (; &lane != own && lane.busy.load(std::memory_order_acquire) != 0; ++waited_ms) {
      if (waited_ms >= 1000) return false;
      nanosleep(&kPause, nullptr);
    }
    return !lane.chunk.IsOpen() || lane.chunk.Seal() == trace::FileStatus::kOk;
  };
  bool all = seal(shared_);
  const size_t count = lane_count_.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i) all = seal(lanes_[i]) && all;
  return all;
}

bool Threads::Steal(Lane* lane) noexcept {
  lane->stolen.store(true);
  // Behind the barrier the owner either is seen to be busy, or sees `stolen` before it touches its chunk.
  const bool free = has_barrier_ && Membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0 &&
                    lane->busy.load(std::memory_order_acquire) == 0;
  if (free) {
    lane->open_base.store(UINT64_MAX);
  } else {
    lane->stolen.store(false);
  }
  return free;
}

uint64_t Threads::Sum(std::atomic<uint64_t> Lane::*counter) const noexcept {
  uint64_t sum = (shared_.*counter).load(std::memory_order_relaxed);
  const size_t count = lane_count_.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i) sum += (lanes_[i].*counter).load(std::memory_order_relaxed);
  return sum;
}

}  // namespace vramtrace::record
