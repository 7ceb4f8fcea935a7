#pragma once
// A process's recording: opened at its first event, closed at its end, given up where it cannot go on.
//
//   idle --first event--> open --exit, full disk, ...--> off
//
// The state of an open recording lives on a page that the kernel empties in every child (MADV_WIPEONFORK):
// after fork, clone or anything else that copies the process the child finds "detached" there, even where no
// fork handler ran. A child of a process that had opened stays silent: CUDA does not survive fork. A child of
// one that had not opens its own file at its own first event.

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string_view>

#include "preload/recorder/record/process_facts.h"
#include "preload/recorder/record/retention.h"
#include "preload/recorder/record/step_summaries.h"
#include "preload/recorder/record/tables.h"
#include "preload/recorder/record/threads.h"
#include "preload/trace/chunk_file.h"

namespace vramtrace::record {

enum class State : uint32_t {
  kDetached = 0,  // what a wiped page says: a forked child
  kIdle,          // no event yet
  kOpen,
  kOff,
};

// Where the state is: a static word while idle, the page of an open recording later. Apart from Session,
// which is all zeros at the start and so takes no room in the library's file.
extern constinit std::atomic<std::atomic<State>*> current_state;

class Session {
 public:
  constexpr Session() = default;

  [[nodiscard]] static State GetState() noexcept {
    return current_state.load(std::memory_order_acquire)->load(std::memory_order_relaxed);
  }
  [[nodiscard]] static bool IsOpen() noexcept { return GetState() == State::kOpen; }

  // True when events can be written.
  [[nodiscard]] bool EnsureOpen() noexcept;

  // Makes the tables usable, before there is a file. False when recording is off.
  [[nodiscard]] bool EnsureTables() noexcept;

  // Recording cannot go on; says so on stderr once. `lane`: the caller's, while it holds one.
  void StopFor(trace::FileStatus status, const Lane* lane) noexcept;
  void StopWith(std::string_view what, std::string_view remedy) noexcept;

  // The end of the process.
  void End() noexcept;

  [[nodiscard]] uint64_t NextSequence() noexcept {
    return sequence_.fetch_add(1, std::memory_order_relaxed) + 1;
  }

  // The newest number that was taken.
  [[nodiscard]] uint64_t LastSequence() const noexcept { return sequence_.load(); }

  Tables tables;
  trace::ChunkFile file;
  Retention retention;
  StepSummaries summaries;
  // Events whose stack was deeper than what a hook captures.
  std::atomic<uint64_t> cut_stacks{0};

  [[nodiscard]] uint32_t ProcessId() const noexcept { return process_.Packet().pid; }
  [[nodiscard]] uint64_t FileId() const noexcept { return file_id_; }

 private:
  [[nodiscard]] bool Open() noexcept;
  [[nodiscard]] bool CreateFile() noexcept;
  [[nodiscard]] static bool Close() noexcept;
  [[nodiscard]] static bool MapState() noexcept;
  static void BeforeFork() noexcept;
  static void AfterForkInParent() noexcept;
  static void AfterForkInChild() noexcept;

  std::mutex open_mutex_;  // first in the lock order: before Tables, before ChunkFile
  std::atomic<bool> tables_ready_{false};
  std::atomic<uint64_t> sequence_{0};
  uint64_t file_id_ = 0;
  std::atomic<bool> ended_{false};
  ProcessSnapshot process_;
};

// The one instance; constant-initialised, never destroyed: hooks run before constructors and after
// destructors.
[[nodiscard]] Session& GetSession() noexcept;

}  // namespace vramtrace::record
