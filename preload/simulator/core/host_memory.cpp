#include "preload/simulator/core/host_memory.h"

#include <sys/mman.h>

#include <map>
#include <mutex>

#include "preload/simulator/core/device.h"
#include "preload/simulator/core/faults.h"
#include "preload/simulator/core/report.h"

namespace vramtrace::simulator {
namespace {

constexpr uint64_t kHostPage = 4096;

struct Registry {
  std::mutex mutex;
  std::map<uint64_t, HostRange> ranges;
  uint64_t pinned_bytes = 0;
};

Registry& TheRegistry() {
  static auto* registry = new Registry;
  return *registry;
}

uint64_t MappedBytes(uint64_t bytes) { return (bytes + kHostPage - 1) / kHostPage * kHostPage; }

}  // namespace

Status AllocateHost(HostKind kind, uint64_t bytes, unsigned flags, void** address) {
  *address = nullptr;
  // Pinning makes a context on the current device, as on a real one.
  if (Status status = EnsureContext(); status != Status::kOk) return status;
  if (ShouldFail(CallKind::kHostAllocate)) return Status::kOutOfMemory;
  if (bytes == 0) return Status::kOk;
  int extra = kind == HostKind::kManaged ? MAP_NORESERVE : 0;
  void* memory =
      mmap(nullptr, MappedBytes(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | extra, -1, 0);
  if (memory == MAP_FAILED) return Status::kOutOfMemory;
  Registry& registry = TheRegistry();
  std::lock_guard lock(registry.mutex);
  auto base = reinterpret_cast<uint64_t>(memory);
  registry.ranges[base] = {base, bytes, kind, flags, CurrentDevice()};
  if (kind == HostKind::kManaged) {
    report::Add(report::Count::kManagedBytes, bytes);
  } else {
    registry.pinned_bytes += bytes;
    report::Raise(report::Count::kPinnedPeakBytes, registry.pinned_bytes);
  }
  *address = memory;
  return Status::kOk;
}

Status FreeHost(void* address) {
  if (address == nullptr) return Status::kOk;
  Registry& registry = TheRegistry();
  std::lock_guard lock(registry.mutex);
  auto range = registry.ranges.find(reinterpret_cast<uint64_t>(address));
  if (range == registry.ranges.end() || range->second.kind == HostKind::kRegistered) {
    return Status::kInvalidValue;
  }
  if (range->second.kind == HostKind::kPinned) registry.pinned_bytes -= range->second.bytes;
  munmap(address, MappedBytes(range->second.bytes));
  registry.ranges.erase(range);
  return Status::kOk;
}

Status RegisterHost(void* address, uint64_t bytes, unsigned flags) {
  if (address == nullptr || bytes == 0) return Status::kInvalidValue;
  if (Status status = EnsureContext(); status != Status::kOk) return status;
  if (ShouldFail(CallKind::kHostAllocate)) return Status::kOutOfMemory;
  Registry& registry = TheRegistry();
  std::lock_guard lock(registry.mutex);
  auto base = reinterpret_cast<uint64_t>(address);
  registry.ranges[base] = {base, bytes, HostKind::kRegistered, flags, CurrentDevice()};
  registry.pinned_bytes += bytes;
  report::Raise(report::Count::kPinnedPeakBytes, registry.pinned_bytes);
  return Status::kOk;
}

Status UnregisterHost(void* address) {
  Registry& registry = TheRegistry();
  std::lock_guard lock(registry.mutex);
  auto range = registry.ranges.find(reinterpret_cast<uint64_t>(address));
  if (range == registry.ranges.end() || range->second.kind != HostKind::kRegistered) return Status::kNotFound;
  registry.pinned_bytes -= range->second.bytes;
  registry.ranges.erase(range);
  return Status::kOk;
}

bool FindHostRange(const void* address, HostRange* range) {
  Registry& registry = TheRegistry();
  std::lock_guard lock(registry.mutex);
  auto wanted = reinterpret_cast<uint64_t>(address);
  auto found = registry.ranges.upper_bound(wanted);
  if (found == registry.ranges.begin()) return false;
  --found;
  if (wanted - found->first >= found->second.bytes) return false;
  *range = found->second;
  return true;
}

}  // namespace vramtrace::simulator
