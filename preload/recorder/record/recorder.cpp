// The functions of recorder.h: from what a hook knows to a packet.

#include "preload/recorder/record/recorder.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "preload/recorder/record/message.h"
#include "preload/recorder/record/session.h"
#include "preload/trace/fault_guard.h"

namespace vramtrace::record {
namespace {

using trace::FileStatus;

class ErrnoKeeper {
 public:
  ErrnoKeeper() : saved_(errno) {}
  ~ErrnoKeeper() { errno = saved_; }
  ErrnoKeeper(const ErrnoKeeper&) = delete;
  ErrnoKeeper& operator=(const ErrnoKeeper&) = delete;

 private:
  int saved_;
};

// One event of the calling thread: holds its lane while alive.
class EventScope {
 public:
  EventScope() : lane_(GetThreads().Enter()), open_(GetSession().IsOpen()) {}
  ~EventScope() {
    if (open_ && failure_ != FileStatus::kOk) {
      Count(&lane_->lost_events);
      GetSession().StopFor(failure_, lane_);
    }
    GetThreads().Leave(lane_);
  }
  EventScope(const EventScope&) = delete;
  EventScope& operator=(const EventScope&) = delete;

  [[nodiscard]] bool IsOpen() const noexcept { return open_; }
  [[nodiscard]] Lane& GetLane() noexcept { return *lane_; }

  // Writes the event with the number that it takes now, and answers it. `fill` sets what depends on the
  // chunk.
  template <typename Packet>
  uint64_t Write(Packet packet, uint64_t address = 0) noexcept {
    Session& session = GetSession();
    if (lane_->stolen.load(std::memory_order_relaxed)) session.retention.AwaitTheft(lane_);
    // Before the number is taken: what looks for complete parts of the sequence must find it missing.
    if (!lane_->chunk.IsOpen()) lane_->open_base.store(session.LastSequence());
    const uint64_t sequence = session.NextSequence();
    const uint64_t time_ns = NowNs();
    if (!Prepare(sequence, time_ns, address)) return sequence;
    trace::ChunkWriter& chunk = lane_->chunk;
    if constexpr (requires { packet.address_delta; }) packet.address_delta = chunk.AddressDelta(address);
    const trace::PacketStamp stamp = chunk.Stamp(sequence, time_ns);
    std::byte buffer[trace::kEventBufferBytes];
    const std::span<const std::byte> bytes = trace::EncodePacket(stamp, packet, buffer);
    if (bytes.empty()) {
      Count(&lane_->lost_events);
      return sequence;
    }
    Note(chunk.Append(bytes, stamp));
    if (session.tables.Failure() != FileStatus::kOk) Note(session.tables.Failure());
    if (trace::MappingLost()) Note(FileStatus::kVanished);
    return sequence;
  }

 private:
  void Note(FileStatus status) noexcept {
    if (failure_ == FileStatus::kOk) failure_ = status;
  }

  // A chunk with room for any event, which a reader takes for this thread's.
  [[nodiscard]] bool Prepare(uint64_t sequence, uint64_t time_ns, uint64_t address) noexcept {
    bool is_new = false;
    const uint32_t thread = GetThreads().ThreadId(&is_new);
    if (is_new) WriteThread(thread);
    trace::ChunkWriter& chunk = lane_->chunk;
    if (!chunk.IsOpen() || chunk.Room() < 2 * trace::kEventBufferBytes) {
      if (!OpenChunk(thread, sequence, time_ns, address)) return false;
    }
    if (lane_->written_thread == thread) return true;
    std::byte buffer[trace::kEventBufferBytes];
    const trace::PacketStamp stamp = chunk.Stamp(0, time_ns);
    Note(chunk.Append(trace::EncodePacket(stamp, trace::ThreadPacket{.id = thread}, buffer), stamp));
    lane_->written_thread = thread;
    return true;
  }

  [[nodiscard]] bool OpenChunk(uint32_t thread, uint64_t sequence, uint64_t time_ns,
                               uint64_t address) noexcept {
    Session& session = GetSession();
    session.retention.MakeRoom(sequence, time_ns);
    trace::ChunkMemory memory;
    if (const FileStatus status = session.file.Allocate(&memory); status != FileStatus::kOk) {
      Note(status);
      return false;
    }
    trace::ChunkWriter& chunk = lane_->chunk;
    if (chunk.IsOpen()) {
      Note(chunk.Seal());
      session.retention.Sealed(chunk);
      chunk.Close();
    }
    const trace::ChunkIdentity identity{.kind = trace::ChunkKind::kEvents,
                                        .thread = thread,
                                        .process_id = session.ProcessId(),
                                        .chunk_bytes = session.file.ChunkBytes(),
                                        .file_id = session.FileId(),
                                        .base_time_ns = time_ns,
                                        .base_sequence = sequence - 1,
                                        .base_address = address};
    Note(chunk.Open(memory, identity));
    lane_->open_base.store(sequence - 1);
    lane_->written_thread = thread;
    return true;
  }

  static void WriteThread(uint32_t thread) noexcept {
    char name[64] = {};
    pthread_getname_np(pthread_self(), name, sizeof(name));
    GetSession().tables.Write(trace::ThreadPacket{
        .id = thread, .system_id = static_cast<uint32_t>(syscall(SYS_gettid)), .name = name});
  }

  Lane* lane_;
  bool open_;
  FileStatus failure_ = FileStatus::kOk;
};

uint32_t StackId(const CapturedStack& stack) noexcept {
  Session& session = GetSession();
  if (stack.python_truncated) session.cut_stacks.fetch_add(1, std::memory_order_relaxed);
  return session.tables.Stack(stack);
}

trace::AutogradFields Autograd(const AutogradPosition& position) noexcept {
  return {.sequence_number = position.sequence_number,
          .operator_name = GetSession().tables.Name(position.operator_name),
          .node_thread = position.node_thread};
}

// The allocator's own totals go into an event when `reserved` changed, and every 1024 events of a device.
class TotalsGate {
 public:
  [[nodiscard]] bool Pass(uint32_t device, uint64_t reserved) noexcept {
    if (device >= kDevices) return true;
    Device& state = devices_[device];
    const uint32_t since = state.since.load(std::memory_order_relaxed);
    if (reserved == state.reserved.load(std::memory_order_relaxed) && since < kEvery) {
      state.since.store(since + 1, std::memory_order_relaxed);
      return false;
    }
    state.reserved.store(reserved, std::memory_order_relaxed);
    state.since.store(1, std::memory_order_relaxed);
    return true;
  }

 private:
  static constexpr uint32_t kDevices = 128;
  static constexpr uint32_t kEvery = 1024;
  // The allocator's lock serialises the events of a device; atomics only for those who do not hold it.
  struct Device {
    std::atomic<uint64_t> reserved{0};
    std::atomic<uint32_t> since{kEvery};
  };
  Device devices_[kDevices];
};
constinit TotalsGate totals_gate;

}  // namespace

bool Recording() noexcept { return GetSession().IsOpen(); }

bool EnsureOpen() noexcept { return GetSession().EnsureOpen(); }

// --------------------------------------------------------------------------------------- caching allocator

void BlockAllocated(const BlockEvent& event, const CapturedStack& stack) noexcept {
  const ErrnoKeeper keeper;
  if (!EnsureOpen()) return;
  EventScope scope;
  if (!scope.IsOpen()) return;
  trace::BlockAllocatePacket packet{.bytes = event.bytes,
                                    .requested = event.requested,
                                    .stack = StackId(stack),
                                    .device = event.device,
                                    .autograd = Autograd(event.autograd)};
  if (totals_gate.Pass(event.device, event.reserved_total)) {
    packet.allocated_total = event.allocated_total;
    packet.reserved_total = event.reserved_total;
  }
  Count(&scope.GetLane().block_allocations);
  const uint64_t sequence = scope.Write(packet, event.address);
  GetSession().retention.statistics.Block(event.device, sequence, event.allocated_total,
                                          event.reserved_total);
}

void BlockFreed(const BlockEvent& event, const CapturedStack& stack) noexcept {
  const ErrnoKeeper keeper;
  if (!EnsureOpen()) return;
  EventScope scope;
  if (!scope.IsOpen()) return;
  trace::BlockFreePacket packet{.bytes = event.bytes,
                                .stack = StackId(stack),
                                .device = event.device,
                                .autograd = Autograd(event.autograd)};
  if (totals_gate.Pass(event.device, event.reserved_total)) {
    packet.allocated_total = event.allocated_total;
    packet.reserved_total = event.reserved_total;
  }
  Count(&scope.GetLane().block_frees);
  const uint64_t sequence = scope.Write(packet, event.address);
  GetSession().retention.statistics.Block(event.device, sequence, event.allocated_total,
                                          event.reserved_total);
}

void OutOfMemory(const BlockEvent& event, const CapturedStack& stack) noexcept {
  const ErrnoKeeper keeper;
  if (!EnsureOpen()) return;
  EventScope scope;
  if (!scope.IsOpen()) return;
  scope.Write(trace::OutOfMemoryPacket{.requested = event.bytes,
                                       .allocated_total = event.allocated_total,
                                       .reserved_total = event.reserved_total,
                                       .device = event.device,
                                       .stack = StackId(stack),
                                       .autograd = Autograd(event.autograd)});
  GetSession().retention.statistics.OutOfMemory();
}

// -------------------------------------------------------------------------------------------------- driver

namespace {

// Addresses and handles may coincide; neither has the lowest bit set.
uint64_t LedgerKey(const DriverEvent& event) noexcept {
  return event.address << 1 | (event.kind == MemoryKind::kPhysical ? 1U : 0U);
}

// For the summaries of steps: managed pages live where they are touched, imported memory is another's.
void NoteDriverAllocation(const DriverEvent& event) noexcept {
  constexpr uint32_t kOutOfMemoryResult = 2;
  Retention& retention = GetSession().retention;
  if (event.result == kOutOfMemoryResult) retention.statistics.Refused(event.device);
  const bool elsewhere = event.kind == MemoryKind::kManaged || event.kind == MemoryKind::kImported ||
                         event.kind == MemoryKind::kGraph;
  if (event.result != 0 || elsewhere) return;
  retention.statistics.Driver(event.device,
                              retention.ledger.Add(event.device, LedgerKey(event), event.bytes));
}

}  // namespace

void DriverAllocated(const DriverEvent& event, const CapturedStack& stack) noexcept {
  const ErrnoKeeper keeper;
  if (!EnsureOpen()) return;
  EventScope scope;
  if (!scope.IsOpen()) return;
  Tables& tables = GetSession().tables;
  NoteDriverAllocation(event);
  Count(&scope.GetLane().driver_allocations);
  scope.Write(trace::DriverAllocatePacket{.bytes = event.bytes,
                                          .stack = StackId(stack),
                                          .device = event.device,
                                          .kind = static_cast<uint32_t>(event.kind),
                                          .function = tables.Name(event.function),
                                          .caller = tables.CallerName(event.caller),
                                          .result = event.result,
                                          .stream = event.stream,
                                          .duration_ns = event.duration_ns},
              event.address);
}

void DriverFreed(const DriverEvent& event, const CapturedStack& stack) noexcept {
  const ErrnoKeeper keeper;
  if (!EnsureOpen()) return;
  EventScope scope;
  if (!scope.IsOpen()) return;
  Tables& tables = GetSession().tables;
  if (event.result == 0) GetSession().retention.ledger.Remove(LedgerKey(event));
  scope.Write(trace::DriverFreePacket{.stack = StackId(stack),
                                      .device = event.device,
                                      .kind = static_cast<uint32_t>(event.kind),
                                      .function = tables.Name(event.function),
                                      .caller = tables.CallerName(event.caller),
                                      .result = event.result,
                                      .stream = event.stream},
              event.address);
}

void HostAllocated(const DriverEvent& event, const CapturedStack& stack) noexcept {
  const ErrnoKeeper keeper;
  if (!EnsureOpen()) return;
  EventScope scope;
  if (!scope.IsOpen()) return;
  Tables& tables = GetSession().tables;
  scope.Write(trace::HostAllocatePacket{.bytes = event.bytes,
                                        .stack = StackId(stack),
                                        .function = tables.Name(event.function),
                                        .caller = tables.CallerName(event.caller),
                                        .result = event.result},
              event.address);
}

void HostFreed(const DriverEvent& event, const CapturedStack& stack) noexcept {
  const ErrnoKeeper keeper;
  if (!EnsureOpen()) return;
  EventScope scope;
  if (!scope.IsOpen()) return;
  Tables& tables = GetSession().tables;
  scope.Write(trace::HostFreePacket{.stack = StackId(stack),
                                    .function = tables.Name(event.function),
                                    .caller = tables.CallerName(event.caller),
                                    .result = event.result},
              event.address);
}

void Mapped(uint32_t device, uint64_t address, uint64_t bytes, uint64_t handle, uint64_t offset) noexcept {
  const ErrnoKeeper keeper;
  if (!EnsureOpen()) return;
  EventScope scope;
  if (!scope.IsOpen()) return;
  scope.Write(trace::MemoryMapPacket{.bytes = bytes, .handle = handle, .offset = offset, .device = device},
              address);
}

void Unmapped(uint32_t device, uint64_t address, uint64_t bytes) noexcept {
  const ErrnoKeeper keeper;
  if (!EnsureOpen()) return;
  EventScope scope;
  if (!scope.IsOpen()) return;
  scope.Write(trace::MemoryUnmapPacket{.bytes = bytes, .device = device}, address);
}

void DeviceMemory(uint32_t device, uint64_t free_bytes, uint64_t total_bytes, QueryReason reason) noexcept {
  const ErrnoKeeper keeper;
  if (!EnsureOpen()) return;
  EventScope scope;
  if (!scope.IsOpen()) return;
  scope.Write(trace::MemoryQueryPacket{.device = device,
                                       .free_bytes = free_bytes,
                                       .total_bytes = total_bytes,
                                       .reason = static_cast<uint32_t>(reason)});
}

void ContextChanged(uint32_t device, uint64_t context, bool destroyed) noexcept {
  const ErrnoKeeper keeper;
  if (!EnsureOpen()) return;
  EventScope scope;
  if (!scope.IsOpen()) return;
  scope.Write(trace::ContextPacket{.device = device, .context = context, .destroyed = destroyed});
}

// ---------------------------------------------------------------------------------- program and its names

// Labels and inputs come for every step: they lie in chunks of events, where retention can drop them.

void Labelled(const LabelEvent& event) noexcept {
  const ErrnoKeeper keeper;
  if (!Recording()) return;
  EventScope scope;
  if (!scope.IsOpen()) return;
  Tables& tables = GetSession().tables;
  scope.Write(trace::LabelPacket{.bytes = event.bytes,
                                 .kind = static_cast<uint32_t>(event.kind),
                                 .name = tables.Text(event.name),
                                 .state_key = tables.Text(event.state_key),
                                 .dtype = tables.Text(event.dtype),
                                 .shape = {event.shape, static_cast<size_t>(event.shape_count)},
                                 .device = event.device},
              event.address);
}

void InputSeen(const InputTensorEvent& event) noexcept {
  const ErrnoKeeper keeper;
  if (!Recording()) return;
  EventScope scope;
  if (!scope.IsOpen()) return;
  Tables& tables = GetSession().tables;
  scope.Write(trace::InputTensorPacket{.name = tables.Text(event.name),
                                       .bytes = event.bytes,
                                       .shape = {event.shape, static_cast<size_t>(event.shape_count)},
                                       .dtype = tables.Text(event.dtype),
                                       .step = event.step,
                                       .on_device = event.on_device,
                                       .module_object = event.module_object},
              event.address);
}

void ModuleNamed(uint64_t object, uint64_t parent, std::string_view path,
                 std::string_view class_name) noexcept {
  const ErrnoKeeper keeper;
  Session& session = GetSession();
  if (!session.EnsureTables()) return;
  session.tables.NameModule(object, parent, path, class_name);
}

void StepMarked(uint64_t number, bool end, std::string_view optimizer, uint64_t optimizer_object) noexcept {
  const ErrnoKeeper keeper;
  if (!Recording()) return;
  EventScope scope;
  if (!scope.IsOpen()) return;
  Session& session = GetSession();
  const uint64_t sequence = scope.Write(trace::StepPacket{.number = number,
                                                          .edge = end ? 1U : 0U,
                                                          .optimizer = session.tables.Text(optimizer),
                                                          .optimizer_object = optimizer_object});
  if (!end) return;
  const uint64_t time_ns = NowNs();
  Retention::EndedStep step;
  session.retention.StepEnded(number, sequence, time_ns, &step);
  if (step.ended) session.summaries.Add(number, sequence, time_ns, step, &session.tables);
}

void PhaseMarked(std::string_view name, bool end) noexcept {
  const ErrnoKeeper keeper;
  Session& session = GetSession();
  if (!session.EnsureTables()) return;
  if (Recording()) {
    EventScope scope;
    if (!scope.IsOpen()) return;
    scope.Write(trace::PhaseMarkPacket{.name = session.tables.Text(name), .end = end});
    return;
  }
  // Before the first event too: a phase may begin (loading a model) before CUDA does.
  session.tables.WriteEvent(trace::PhaseMarkPacket{.name = session.tables.Text(name), .end = end});
}

void DeviceDescribed(const DeviceDescription& device) noexcept {
  const ErrnoKeeper keeper;
  Session& session = GetSession();
  if (!session.EnsureTables()) return;
  session.tables.Write(trace::DevicePacket{.device = device.device,
                                           .name = device.name,
                                           .total_bytes = device.total_bytes,
                                           .compute_major = device.compute_major,
                                           .compute_minor = device.compute_minor,
                                           .multiprocessors = device.multiprocessors,
                                           .uuid = device.uuid});
}

void ProcessLearned(const ProcessFacts& facts) noexcept {
  const ErrnoKeeper keeper;
  Session& session = GetSession();
  if (!session.EnsureTables()) return;
  session.tables.Write(trace::ProcessPacket{.python_version = facts.python_version,
                                            .torch_version = facts.torch_version,
                                            .simulated = facts.simulated == 1,
                                            .driver_version = facts.driver_version,
                                            .cuda_runtime_version = facts.cuda_runtime_version});
}

void FeatureSet(std::string_view name, bool on, std::string_view reason) noexcept {
  const ErrnoKeeper keeper;
  Session& session = GetSession();
  if (!session.EnsureTables()) return;
  session.tables.Write(trace::FeaturePacket{.name = session.tables.Text(name), .on = on, .reason = reason});
}

void EndRecording() noexcept {
  const ErrnoKeeper keeper;
  GetSession().End();
}

void FailOpen(std::string_view what, std::string_view remedy) noexcept {
  const ErrnoKeeper keeper;
  GetSession().StopWith(what, remedy);
}

}  // namespace vramtrace::record
