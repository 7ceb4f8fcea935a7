#include "preload/simulator/core/pools.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "preload/simulator/core/contents.h"
#include "preload/simulator/core/device.h"
#include "preload/simulator/core/memory.h"

namespace vramtrace::simulator {

struct Pool {
  int device = 0;
  bool is_default = false;
  PoolUsage usage;
  std::map<uint64_t, uint64_t> chunks;  // from the device: address -> bytes
  std::map<uint64_t, uint64_t> free;    // address -> bytes, never across chunks
  std::map<uint64_t, uint64_t> live;    // address -> bytes
};

namespace {

constexpr uint64_t kGrowth = 32u << 20;

struct Pools {
  std::mutex mutex;  // taken before the memory book's
  std::vector<std::unique_ptr<Pool>> all;
  std::vector<Pool*> defaults;
  std::vector<Pool*> current;
};

Pools& ThePools() {
  static auto* pools = [] {
    auto* made = new Pools;
    for (int device = 0; device < DeviceCount(); ++device) {
      made->all.push_back(std::make_unique<Pool>());
      made->all.back()->device = device;
      made->all.back()->is_default = true;
      made->defaults.push_back(made->all.back().get());
    }
    made->current = made->defaults;
    return made;
  }();
  return *pools;
}

uint64_t RoundUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

uint64_t TakeFree(Pool& pool, uint64_t bytes) {
  for (auto piece = pool.free.begin(); piece != pool.free.end(); ++piece) {
    auto [address, room] = *piece;
    if (room < bytes) continue;
    pool.free.erase(piece);
    if (room > bytes) pool.free[address + bytes] = room - bytes;
    return address;
  }
  return 0;
}

Status Grow(Pool& pool, uint64_t bytes) {
  void* chunk = nullptr;
  uint64_t wanted = RoundUp(bytes, kGrowth);
  Status status = Allocate(pool.device, wanted, &chunk);
  if (status == Status::kOutOfMemory && RoundUp(bytes, kPageBytes) < wanted) {
    wanted = RoundUp(bytes, kPageBytes);  // the last room of a nearly full card
    status = Allocate(pool.device, std::max(wanted, kPageBytes), &chunk);
    wanted = std::max(wanted, kPageBytes);
  }
  if (status != Status::kOk) return status;
  auto address = reinterpret_cast<uint64_t>(chunk);
  pool.chunks[address] = wanted;
  pool.free[address] = wanted;
  pool.usage.reserved_bytes += wanted;
  pool.usage.reserved_high_bytes = std::max(pool.usage.reserved_high_bytes, pool.usage.reserved_bytes);
  return Status::kOk;
}

void GiveFree(Pool& pool, uint64_t address, uint64_t bytes) {
  auto chunk_of = [&](uint64_t at) { return std::prev(pool.chunks.upper_bound(at))->first; };
  auto piece = pool.free.emplace(address, bytes).first;
  auto next = std::next(piece);
  if (next != pool.free.end() && piece->first + piece->second == next->first &&
      chunk_of(piece->first) == chunk_of(next->first)) {
    piece->second += next->second;
    pool.free.erase(next);
  }
  if (piece == pool.free.begin()) return;
  auto previous = std::prev(piece);
  if (previous->first + previous->second == piece->first &&
      chunk_of(previous->first) == chunk_of(piece->first)) {
    previous->second += piece->second;
    pool.free.erase(piece);
  }
}

void Trim(Pool& pool, uint64_t keep) {
  for (auto chunk = pool.chunks.begin(); chunk != pool.chunks.end() && pool.usage.reserved_bytes > keep;) {
    auto piece = pool.free.find(chunk->first);
    if (piece == pool.free.end() || piece->second != chunk->second) {
      ++chunk;
      continue;
    }
    if (Free(reinterpret_cast<void*>(chunk->first)) != Status::kOk) return;
    pool.usage.reserved_bytes -= chunk->second;
    pool.free.erase(piece);
    chunk = pool.chunks.erase(chunk);
  }
}

}  // namespace

Pool* DefaultPool(int device) {
  return DeviceAt(device) == nullptr ? nullptr : ThePools().defaults[static_cast<size_t>(device)];
}

Status CreatePool(int device, Pool** pool) {
  if (Status status = EnsureContext(device); status != Status::kOk) return status;
  Pools& pools = ThePools();
  std::lock_guard lock(pools.mutex);
  pools.all.push_back(std::make_unique<Pool>());
  pools.all.back()->device = device;
  *pool = pools.all.back().get();
  return Status::kOk;
}

Status DestroyPool(Pool* pool) {
  if (pool == nullptr || pool->is_default) return Status::kInvalidValue;
  Pools& pools = ThePools();
  std::lock_guard lock(pools.mutex);
  Trim(*pool, 0);
  for (size_t device = 0; device < pools.current.size(); ++device) {
    if (pools.current[device] == pool) pools.current[device] = pools.defaults[device];
  }
  // A pool with live allocations lives on until they are freed; here it stays in the table without a handle.
  if (pool->live.empty()) std::erase_if(pools.all, [&](const auto& entry) { return entry.get() == pool; });
  return Status::kOk;
}

Pool* FindPool(void* handle) {
  Pools& pools = ThePools();
  std::lock_guard lock(pools.mutex);
  for (const auto& pool : pools.all) {
    if (pool.get() == handle) return pool.get();
  }
  return nullptr;
}

int PoolDevice(const Pool* pool) { return pool->device; }

Pool* CurrentPool(int device) {
  if (DeviceAt(device) == nullptr) return nullptr;
  Pools& pools = ThePools();
  std::lock_guard lock(pools.mutex);
  return pools.current[static_cast<size_t>(device)];
}

Status SetCurrentPool(int device, Pool* pool) {
  if (DeviceAt(device) == nullptr || pool == nullptr || pool->device != device) return Status::kInvalidValue;
  Pools& pools = ThePools();
  std::lock_guard lock(pools.mutex);
  pools.current[static_cast<size_t>(device)] = pool;
  return Status::kOk;
}

Status AllocateFromPool(Pool* pool, uint64_t bytes, void** address) {
  *address = nullptr;
  if (pool == nullptr) return Status::kInvalidValue;
  if (bytes == 0) return EnsureContext(pool->device);
  if (bytes > ~uint64_t{0} - kGrowth) return Status::kOutOfMemory;
  Pools& pools = ThePools();
  std::lock_guard lock(pools.mutex);
  uint64_t slot = RoundUp(bytes, kAddressAlignment);
  uint64_t found = TakeFree(*pool, slot);
  if (found == 0) {
    if (Status status = Grow(*pool, slot); status != Status::kOk) return status;
    found = TakeFree(*pool, slot);
  }
  pool->live[found] = slot;
  pool->usage.used_bytes += slot;
  pool->usage.used_high_bytes = std::max(pool->usage.used_high_bytes, pool->usage.used_bytes);
  *address = reinterpret_cast<void*>(found);
  return Status::kOk;
}

Status FreeToPool(void* address) {
  if (address == nullptr) return Status::kOk;
  Pools& pools = ThePools();
  std::lock_guard lock(pools.mutex);
  for (const auto& pool : pools.all) {
    auto live = pool->live.find(reinterpret_cast<uint64_t>(address));
    if (live == pool->live.end()) continue;
    auto [base, bytes] = *live;
    pool->live.erase(live);
    pool->usage.used_bytes -= bytes;
    Clear(address, bytes);
    GiveFree(*pool, base, bytes);
    return Status::kOk;
  }
  return Status::kNotFound;
}

PoolUsage UsageOf(Pool* pool) {
  std::lock_guard lock(ThePools().mutex);
  return pool->usage;
}

void SetReleaseThreshold(Pool* pool, uint64_t bytes) {
  std::lock_guard lock(ThePools().mutex);
  pool->usage.release_threshold = bytes;
}

void ResetReservedHigh(Pool* pool) {
  std::lock_guard lock(ThePools().mutex);
  pool->usage.reserved_high_bytes = pool->usage.reserved_bytes;
}

void ResetUsedHigh(Pool* pool) {
  std::lock_guard lock(ThePools().mutex);
  pool->usage.used_high_bytes = pool->usage.used_bytes;
}

void TrimPool(Pool* pool, uint64_t keep_bytes) {
  std::lock_guard lock(ThePools().mutex);
  Trim(*pool, keep_bytes);
}

void TrimPoolsToThreshold(int device) {
  Pools& pools = ThePools();
  std::lock_guard lock(pools.mutex);
  for (const auto& pool : pools.all) {
    if (pool->device == device) Trim(*pool, pool->usage.release_threshold);
  }
}

}  // namespace vramtrace::simulator
