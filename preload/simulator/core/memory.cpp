#include "preload/simulator/core/memory.h"

#include <pthread.h>

#include <algorithm>

#include "preload/simulator/core/contents.h"
#include "preload/simulator/core/faults.h"
#include "preload/simulator/core/log.h"
#include "preload/simulator/core/report.h"
#include "preload/simulator/core/state.h"

namespace vramtrace::simulator {
namespace {

uint64_t RoundUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

State* MakeState() {
  auto* state = new State;
  for (int device = 0; device < DeviceCount(); ++device) state->books.emplace_back();
  // A fork must find the book consistent: the child refuses CUDA, but its parent goes on.
  static State* forked = state;
  pthread_atfork([] { forked->mutex.lock(); }, [] { forked->mutex.unlock(); },
                 [] {
                   forked->mutex.unlock();
                   for (const DeviceBook& book : forked->books) {
                     if (book.has_context) MarkForked();
                   }
                 });
  return state;
}

// Takes `bytes` from the first shared page with room.
uint64_t TakeShared(State& state, int device, uint64_t bytes) {
  for (auto& [page, shared] : state.shared_pages) {
    if (shared.device != device) continue;
    for (auto piece = shared.free.begin(); piece != shared.free.end(); ++piece) {
      auto [offset, room] = *piece;
      if (room < bytes) continue;
      shared.free.erase(piece);
      if (room > bytes) shared.free[offset + bytes] = room - bytes;
      ++shared.live;
      return page + offset;
    }
  }
  return 0;
}

bool AddSharedPage(State& state, int device, uint64_t request) {
  if (!Charge(state, device, kPageBytes, "cudaMalloc")) {
    state.books[static_cast<size_t>(device)].largest_refused =
        std::max(state.books[static_cast<size_t>(device)].largest_refused, request);
    return false;
  }
  uint64_t page = state.addresses.Take(kPageBytes, kPageBytes);
  if (page == 0) {
    Uncharge(state, device, kPageBytes);
    return false;
  }
  SharedPage shared;
  shared.device = device;
  shared.free[0] = kPageBytes;
  state.shared_pages[page] = std::move(shared);
  return true;
}

void GiveShared(State& state, uint64_t address, uint64_t bytes) {
  uint64_t page = address & ~(kPageBytes - 1);
  SharedPage& shared = state.shared_pages.at(page);
  if (--shared.live == 0) {
    Uncharge(state, shared.device, kPageBytes);
    state.shared_pages.erase(page);
    state.addresses.Give(page, kPageBytes);
    return;
  }
  auto piece = shared.free.emplace(address - page, bytes).first;
  auto next = std::next(piece);
  if (next != shared.free.end() && piece->first + piece->second == next->first) {
    piece->second += next->second;
    shared.free.erase(next);
  }
  if (piece == shared.free.begin()) return;
  auto previous = std::prev(piece);
  if (previous->first + previous->second == piece->first) {
    previous->second += piece->second;
    shared.free.erase(piece);
  }
}

Status AllocateSmall(State& state, int device, uint64_t bytes, void** address) {
  uint64_t slot = RoundUp(bytes, kAddressAlignment);
  uint64_t found = TakeShared(state, device, slot);
  if (found == 0) {
    if (!AddSharedPage(state, device, bytes)) return Status::kOutOfMemory;
    found = TakeShared(state, device, slot);
  }
  state.ranges[found] = {bytes, 0, device, RangeKind::kDevice};
  *address = reinterpret_cast<void*>(found);
  return Status::kOk;
}

Status AllocatePages(State& state, int device, uint64_t bytes, void** address) {
  if (bytes > ~uint64_t{0} - kPageBytes) return Status::kOutOfMemory;
  uint64_t charged = RoundUp(bytes, kPageBytes);
  if (!Charge(state, device, charged, "cudaMalloc")) return Status::kOutOfMemory;
  uint64_t found = state.addresses.Take(charged, kPageBytes);
  if (found == 0) {
    Uncharge(state, device, charged);
    return Status::kOutOfMemory;
  }
  state.ranges[found] = {bytes, charged, device, RangeKind::kDevice};
  *address = reinterpret_cast<void*>(found);
  return Status::kOk;
}

}  // namespace

State& TheState() {
  static State* state = MakeState();
  return *state;
}

bool Charge(State& state, int device, uint64_t bytes, const char* what) {
  DeviceBook& book = state.books[static_cast<size_t>(device)];
  uint64_t total = DeviceAt(device)->total_bytes;
  if (bytes > total || book.used > total - bytes) {
    ++book.refused;
    book.largest_refused = std::max(book.largest_refused, bytes);
    report::Refused(device, bytes, what);
    return false;
  }
  book.used += bytes;
  book.peak = std::max(book.peak, book.used);
  report::UpdateDevice(device);
  return true;
}

void Uncharge(State& state, int device, uint64_t bytes) {
  DeviceBook& book = state.books[static_cast<size_t>(device)];
  book.used -= std::min(bytes, book.used);
  report::UpdateDevice(device);
}

const std::pair<const uint64_t, RangeEntry>* RangeOf(State& state, uint64_t address) {
  auto range = state.ranges.upper_bound(address);
  if (range == state.ranges.begin()) return nullptr;
  --range;
  return address - range->first < range->second.bytes ? &*range : nullptr;
}

Status Allocate(int device, uint64_t bytes, void** address) {
  *address = nullptr;
  if (Status status = Ready(device); status != Status::kOk) return status;
  if (bytes == 0) return Status::kOk;
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  report::Add(report::Count::kAllocations);
  if (ShouldFail(CallKind::kAllocate)) {
    report::Refused(device, bytes, "VRAMTRACE_SIM_FAIL");
    return Status::kOutOfMemory;
  }
  return bytes <= kSmallRequestBytes ? AllocateSmall(state, device, bytes, address)
                                     : AllocatePages(state, device, bytes, address);
}

Status Free(void* address) {
  if (address == nullptr) return Status::kOk;
  if (Forked()) return Status::kForked;
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  auto range = state.ranges.find(reinterpret_cast<uint64_t>(address));
  if (range == state.ranges.end() || range->second.kind != RangeKind::kDevice) return Status::kInvalidValue;
  report::Add(report::Count::kFrees);
  auto [base, entry] = *range;
  state.ranges.erase(range);
  if (entry.charged == 0) {
    uint64_t slot = RoundUp(entry.bytes, kAddressAlignment);
    ForgetStored(state, base, slot);
    GiveShared(state, base, slot);
  } else {
    ForgetStored(state, base, entry.charged);
    Uncharge(state, entry.device, entry.charged);
    state.addresses.Give(base, entry.charged);
  }
  return Status::kOk;
}

Status ChargeOutside(int device, uint64_t bytes, const char* owner) {
  if (Status status = Ready(device); status != Status::kOk) return status;
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  if (!Charge(state, device, bytes, owner)) return Status::kOutOfMemory;
  DeviceBook& book = state.books[static_cast<size_t>(device)];
  book.outside += bytes;
  auto& [now, peak] = book.owners[owner];
  now += bytes;
  peak = std::max(peak, now);
  return Status::kOk;
}

void UnchargeOutside(int device, uint64_t bytes, const char* owner) {
  if (Forked() || DeviceAt(device) == nullptr) return;
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  DeviceBook& book = state.books[static_cast<size_t>(device)];
  uint64_t& now = book.owners[owner].first;
  bytes = std::min(bytes, now);
  now -= bytes;
  book.outside -= bytes;
  Uncharge(state, device, bytes);
}

MemoryInfo PeekMemory(int device) {
  const Device* facts = DeviceAt(device);
  if (facts == nullptr) return {};
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  const DeviceBook& book = state.books[static_cast<size_t>(device)];
  return {facts->total_bytes, book.used, book.peak, book.has_context ? facts->context_bytes : 0,
          book.outside};
}

Status QueryMemory(int device, MemoryInfo* info) {
  if (Status status = Ready(device); status != Status::kOk) return status;
  *info = PeekMemory(device);
  return Status::kOk;
}

bool IsDeviceAddress(const void* address) {
  return TheState().addresses.Contains(reinterpret_cast<uint64_t>(address));
}

bool FindRange(const void* address, Range* range) {
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  const auto* found = RangeOf(state, reinterpret_cast<uint64_t>(address));
  if (found == nullptr) return false;
  *range = {found->first, found->second.bytes, found->second.device, found->second.kind};
  return true;
}

Status AllocateModuleMemory(int device, uint64_t bytes, void** address) {
  *address = nullptr;
  if (Status status = Ready(device); status != Status::kOk) return status;
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  uint64_t found = state.addresses.Take(RoundUp(std::max<uint64_t>(bytes, 1), kHostPage), kHostPage);
  if (found == 0) return Status::kOutOfMemory;
  state.ranges[found] = {bytes, 0, device, RangeKind::kModule};
  *address = reinterpret_cast<void*>(found);
  return Status::kOk;
}

Status FreeModuleMemory(void* address) {
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  auto range = state.ranges.find(reinterpret_cast<uint64_t>(address));
  if (range == state.ranges.end() || range->second.kind != RangeKind::kModule) return Status::kInvalidValue;
  uint64_t bytes = RoundUp(std::max<uint64_t>(range->second.bytes, 1), kHostPage);
  ForgetStored(state, range->first, bytes);
  state.addresses.Give(range->first, bytes);
  state.ranges.erase(range);
  return Status::kOk;
}

}  // namespace vramtrace::simulator
