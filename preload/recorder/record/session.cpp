#include "preload/recorder/record/session.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>

#include "preload/recorder/record/message.h"
#include "preload/recorder/record/options.h"
#include "preload/recorder/record/output_path.h"
#include "preload/trace/fault_guard.h"

namespace vramtrace::record {
namespace {

using trace::FileStatus;
using trace::LossReason;

static_assert(std::is_trivially_destructible_v<Session>);
constinit Session session;
constinit std::atomic<State> idle_state{State::kIdle};

constexpr const char* kRemedyFolder = "set VRAMTRACE_OUTPUT to a folder that can be written";
constexpr const char* kRemedyMemory = "free some host memory or raise the limit (ulimit -v)";
constexpr const char* kRemedySpace = "free some space or set VRAMTRACE_OUTPUT to a folder on another disk";

struct Ending {
  LossReason reason;
  const char* what;
  const char* remedy;
};

// `error`: errno as the failed call left it.
Ending Describe(FileStatus status, int error) {
  switch (status) {
    case FileStatus::kDiskFull:
      return {LossReason::kDiskFull, "no space left for the trace", kRemedySpace};
    case FileStatus::kSizeLimit:
      return {LossReason::kStopped,
              "the trace has reached VRAMTRACE_MAX_SIZE and nothing can be left out of it", "raise it"};
    case FileStatus::kVanished:
      return {LossReason::kStopped, "the trace was deleted or cut while it was written",
              "leave it alone until the program has ended"};
    default:
      return {LossReason::kStopped, "the trace cannot be written",
              error == ENOMEM ? kRemedyMemory : kRemedyFolder};
  }
}

// Not strerrordesc_np: that needs glibc 2.32, and PyTorch's wheels run on 2.28.
const char* ErrorText(int error, char* room, size_t room_bytes) {
  return strerror_r(error, room, room_bytes);
}

void EndOfProcess() { GetSession().End(); }

}  // namespace

constinit std::atomic<std::atomic<State>*> current_state{&idle_state};

Session& GetSession() noexcept { return session; }

// ------------------------------------------------------------------------------------------------ opening

bool Session::EnsureTables() noexcept {
  if (tables_ready_.load(std::memory_order_acquire)) return GetState() == State::kIdle || IsOpen();
  const std::lock_guard lock(open_mutex_);
  if (tables_ready_.load(std::memory_order_relaxed)) return GetState() == State::kIdle || IsOpen();
  const Options& options = GetOptions();
  if (options.verbose) PrintOptions();
  file_id_ = trace::NewFileId();
  tables.Configure({.chunk_bytes = options.chunk_size,
                    .memory_bytes = options.table_memory,
                    .file_id = file_id_,
                    .sequence = &sequence_});
  pthread_atfork(BeforeFork, AfterForkInParent, AfterForkInChild);
  if (!options.record) idle_state.store(State::kOff, std::memory_order_relaxed);
  tables_ready_.store(true, std::memory_order_release);
  return options.record;
}

bool Session::EnsureOpen() noexcept {
  switch (GetState()) {
    case State::kOpen:
      return true;
    case State::kIdle:
      break;
    default:
      return false;
  }
  const int saved_errno = errno;
  bool open = false;
  if (EnsureTables()) {
    const std::lock_guard lock(open_mutex_);
    open = GetState() == State::kIdle ? Open() : IsOpen();
  }
  errno = saved_errno;
  return open;
}

// A page that every child of this process sees empty.
bool Session::MapState() noexcept {
  const auto page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const page = mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return false;
  // Before Linux 4.14 the fork handler alone detaches the child.
  madvise(page, page_bytes, MADV_WIPEONFORK);
  current_state.store(new (page) std::atomic<State>(State::kIdle), std::memory_order_release);
  return true;
}

bool Session::CreateFile() noexcept {
  const Options& options = GetOptions();
  const trace::ProcessPacket& process = process_.Packet();
  const OutputNames names{.program = process_.Program(),
                          .process_id = process.pid,
                          .rank = process.rank,
                          .host = process.host,
                          .start_unix_ns = process.start_unix_ns};
  char path[trace::ChunkFile::kMaxPathBytes];
  if (!MakeOutputPath(options.output, names, path, sizeof(path))) {
    Say("recording off: the trace's path is too long; %s", kRemedyFolder);
    return false;
  }
  const trace::WriteMode modes[] = {trace::WriteMode::kAutomatic, trace::WriteMode::kMapped,
                                    trace::WriteMode::kPlain};
  const trace::ChunkFile::Settings settings{.chunk_bytes = options.chunk_size,
                                            .max_file_bytes = options.max_size,
                                            .mode = modes[static_cast<size_t>(options.write)]};
  MakeParentFolders(path);
  FileStatus status = file.Create(path, settings);
  constexpr int kAttempts = 10000;
  char alternative[trace::ChunkFile::kMaxPathBytes];
  for (int i = 1; status == FileStatus::kFailed && errno == EEXIST && i < kAttempts; ++i) {
    if (!MakeAlternativePath(path, i, alternative, sizeof(alternative))) break;
    status = file.Create(alternative, settings);
  }
  if (status == FileStatus::kOk) return true;
  const int error = errno;
  char text[128];
  Say("recording off: cannot create %s: %s; %s", path, ErrorText(error, text, sizeof(text)),
      status == FileStatus::kDiskFull ? kRemedySpace : kRemedyFolder);
  return false;
}

bool Session::Open() noexcept {
  process_.Take();
  trace::InstallFaultGuard();
  FileStatus status = FileStatus::kFailed;
  if (MapState() && CreateFile()) {
    status = tables.Attach(&file, process_.Packet().pid);
    if (status == FileStatus::kOk && tables.Write(process_.Packet())) {
      GetThreads().Start();
      retention.Start({.file = &file,
                       .file_id = file_id_,
                       .process_id = process_.Packet().pid,
                       .sequence = &sequence_,
                       .now_ns = NowNs()});
      summaries.Start(GetOptions().max_size);
      // Registered now, behind the driver's own handlers: it runs before them.
      std::atexit(EndOfProcess);
      current_state.load(std::memory_order_relaxed)->store(State::kOpen, std::memory_order_release);
      if (GetOptions().verbose)
        Say("recording to %s%s", file.Path(), file.Plain() ? " with plain writes" : "");
      return true;
    }
    const Ending ending = Describe(status, file.LastError());
    Say("recording off: %s (%s); %s", ending.what, file.Path(), ending.remedy);
    file.Remove();
  }
  current_state.load(std::memory_order_relaxed)->store(State::kOff, std::memory_order_release);
  return false;
}

// ------------------------------------------------------------------------------------------------ closing

// One caller gets true: the one that closed an open recording.
bool Session::Close() noexcept {
  State expected = State::kOpen;
  return current_state.load(std::memory_order_acquire)->compare_exchange_strong(expected, State::kOff);
}

void Session::StopFor(FileStatus status, const Lane* lane) noexcept {
  const int error = file.LastError();
  if (!Close()) return;
  const Ending ending = Describe(status, error);
  char text[128];
  if (status == FileStatus::kFailed) {
    Say("recording stopped: %s (%s: %s); %s", ending.what, file.Path(), ErrorText(error, text, sizeof(text)),
        ending.remedy);
  } else {
    Say("recording stopped: %s (%s); %s", ending.what, file.Path(), ending.remedy);
  }
  if (status == FileStatus::kVanished) return;
  GetThreads().SealAll(lane);
  tables.NoteLoss({.reason = static_cast<uint32_t>(ending.reason),
                   .events = GetThreads().Sum(&Lane::lost_events),
                   .text = ending.what});
}

void Session::StopWith(std::string_view what, std::string_view remedy) noexcept {
  const auto length = [](std::string_view text) { return static_cast<int>(text.size()); };
  const bool was_open = Close();
  State idle = State::kIdle;
  const bool was_idle =
      !was_open && current_state.load(std::memory_order_acquire)->compare_exchange_strong(idle, State::kOff);
  if (!was_open && !was_idle) return;
  Say("recording %s: %.*s; %.*s", was_open ? "stopped" : "off", length(what), what.data(), length(remedy),
      remedy.data());
  if (!was_open) return;
  GetThreads().SealAll(nullptr);
  tables.NoteLoss({.reason = static_cast<uint32_t>(LossReason::kStopped), .events = 0, .text = what});
}

void Session::End() noexcept {
  if (GetState() == State::kDetached) return;
  const bool was_open = Close();
  if (file.ChunkCount() == 0 || trace::MappingLost() || ended_.exchange(true)) return;
  Threads& threads = GetThreads();
  if (was_open) threads.SealAll(nullptr);
  trace::LossPacket losses[3];
  size_t count = 0;
  const auto add = [&losses, &count](LossReason reason, uint64_t events, std::string_view text) {
    if (events == 0) return;
    losses[count++] = {.reason = static_cast<uint32_t>(reason), .events = events, .text = text};
  };
  add(LossReason::kTableFull, tables.TableFullCount(),
      "events without a stack: the tables are full; raise VRAMTRACE_TABLE_MEMORY");
  add(LossReason::kStackTooDeep, cut_stacks.load(std::memory_order_relaxed),
      "events whose stack was cut at its outer end: it is deeper than the recorder captures");
  add(LossReason::kChunk, tables.UnkeptCount(),
      "names learned before the first CUDA call: the memory for them was full");
  const trace::TrailerPacket trailer{.events = sequence_.load(std::memory_order_relaxed),
                                     .block_allocations = threads.Sum(&Lane::block_allocations),
                                     .block_frees = threads.Sum(&Lane::block_frees),
                                     .driver_allocations = threads.Sum(&Lane::driver_allocations),
                                     .lost_events = threads.Sum(&Lane::lost_events)};
  tables.Finish({losses, count}, &trailer);
  file.Finish();
  if (GetOptions().verbose) Say("recorded %s", file.Path());
}

// --------------------------------------------------------------------------------------------------- fork

// The locks are taken before the fork, so that the child does not find them held by threads that it lacks.
void Session::BeforeFork() noexcept {
  session.open_mutex_.lock();
  session.summaries.LockForFork();
  session.tables.LockForFork();
  session.retention.LockForFork();
  session.file.LockForFork();
}

void Session::AfterForkInParent() noexcept {
  session.file.UnlockAfterFork();
  session.retention.UnlockAfterFork();
  session.tables.UnlockAfterFork();
  session.summaries.UnlockAfterFork();
  session.open_mutex_.unlock();
}

void Session::AfterForkInChild() noexcept {
  AfterForkInParent();
  if (current_state.load() == &idle_state) return;
  current_state.load()->store(State::kDetached);
}

}  // namespace vramtrace::record
