#include "preload/simulator/core/virtual_memory.h"

#include <map>

#include "preload/simulator/core/device.h"
#include "preload/simulator/core/faults.h"
#include "preload/simulator/core/report.h"
#include "preload/simulator/core/state.h"

namespace vramtrace::simulator {
namespace {

struct Physical {
  Location location = Location::kDevice;
  int device = 0;
  uint64_t bytes = 0;
  int handle_references = 0;
  int mappings = 0;
};

struct Mapping {
  uint64_t bytes = 0;
  uint64_t handle = 0;
};

// Guarded by State::mutex.
struct Tables {
  std::map<uint64_t, uint64_t> reservations;
  std::map<uint64_t, Physical> physical;
  std::map<uint64_t, Mapping> mappings;
  uint64_t next_handle = 0x1000;
};

Tables& TheTables() {
  static auto* tables = new Tables;
  return *tables;
}

void ReleaseIfUnused(State& state, Tables& tables, std::map<uint64_t, Physical>::iterator physical) {
  if (physical->second.handle_references != 0 || physical->second.mappings != 0) return;
  if (physical->second.location == Location::kDevice) {
    Uncharge(state, physical->second.device, physical->second.bytes);
  }
  tables.physical.erase(physical);
}

bool Reserved(const Tables& tables, uint64_t address, uint64_t bytes) {
  auto reservation = tables.reservations.upper_bound(address);
  if (reservation == tables.reservations.begin()) return false;
  --reservation;
  uint64_t offset = address - reservation->first;
  return offset < reservation->second && bytes <= reservation->second - offset;
}

bool AnyMapping(const Tables& tables, uint64_t address, uint64_t bytes) {
  auto mapping = tables.mappings.lower_bound(address + bytes);
  if (mapping == tables.mappings.begin()) return false;
  --mapping;
  return mapping->first + mapping->second.bytes > address;
}

// True when whole mappings cover the range exactly.
bool ExactlyMapped(const Tables& tables, uint64_t address, uint64_t bytes) {
  uint64_t end = address + bytes;
  while (address < end) {
    auto mapping = tables.mappings.find(address);
    if (mapping == tables.mappings.end()) return false;
    address += mapping->second.bytes;
  }
  return address == end;
}

bool Aligned(uint64_t value) { return value % kPhysicalGranularity == 0; }

}  // namespace

Status ReserveAddresses(uint64_t bytes, uint64_t alignment, uint64_t hint, uint64_t* address) {
  if (bytes == 0 || !Aligned(bytes)) return Status::kInvalidValue;
  if (alignment < kPhysicalGranularity) alignment = kPhysicalGranularity;
  if ((alignment & (alignment - 1)) != 0) return Status::kInvalidValue;
  if (Forked()) return Status::kForked;
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  *address = state.addresses.Take(bytes, alignment, hint);
  if (*address == 0) return Status::kOutOfMemory;
  TheTables().reservations[*address] = bytes;
  return Status::kOk;
}

Status ReleaseAddresses(uint64_t address, uint64_t bytes) {
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  Tables& tables = TheTables();
  auto reservation = tables.reservations.find(address);
  if (reservation == tables.reservations.end() || reservation->second != bytes) return Status::kInvalidValue;
  if (AnyMapping(tables, address, bytes)) return Status::kInvalidValue;
  state.addresses.Give(address, bytes);
  tables.reservations.erase(reservation);
  return Status::kOk;
}

Status CreatePhysical(Location location, int device, uint64_t bytes, uint64_t* handle) {
  if (bytes == 0 || !Aligned(bytes)) return Status::kInvalidValue;
  if (Status status = Ready(device); status != Status::kOk) return status;
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  report::Add(report::Count::kPhysicalCreated);
  if (ShouldFail(CallKind::kPhysical)) {
    report::Refused(device, bytes, "VRAMTRACE_SIM_FAIL");
    return Status::kOutOfMemory;
  }
  if (location == Location::kDevice && !Charge(state, device, bytes, "cuMemCreate")) {
    return Status::kOutOfMemory;
  }
  Tables& tables = TheTables();
  *handle = tables.next_handle++;
  tables.physical[*handle] = {location, device, bytes, 1, 0};
  return Status::kOk;
}

Status RetainPhysical(uint64_t mapped_address, uint64_t* handle) {
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  Tables& tables = TheTables();
  auto mapping = tables.mappings.upper_bound(mapped_address);
  if (mapping == tables.mappings.begin()) return Status::kInvalidValue;
  --mapping;
  if (mapped_address - mapping->first >= mapping->second.bytes) return Status::kInvalidValue;
  *handle = mapping->second.handle;
  ++tables.physical.at(*handle).handle_references;
  return Status::kOk;
}

Status ReleasePhysical(uint64_t handle) {
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  Tables& tables = TheTables();
  auto physical = tables.physical.find(handle);
  if (physical == tables.physical.end() || physical->second.handle_references == 0) {
    return Status::kInvalidValue;
  }
  --physical->second.handle_references;
  ReleaseIfUnused(state, tables, physical);
  return Status::kOk;
}

Status PhysicalProperties(uint64_t handle, Location* location, int* device, uint64_t* bytes) {
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  auto physical = TheTables().physical.find(handle);
  if (physical == TheTables().physical.end()) return Status::kInvalidValue;
  *location = physical->second.location;
  *device = physical->second.device;
  *bytes = physical->second.bytes;
  return Status::kOk;
}

Status Map(uint64_t address, uint64_t bytes, uint64_t offset, uint64_t handle) {
  if (bytes == 0 || !Aligned(address) || !Aligned(bytes) || !Aligned(offset)) return Status::kInvalidValue;
  if (Forked()) return Status::kForked;
  if (ShouldFail(CallKind::kMap)) return Status::kInjected;
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  Tables& tables = TheTables();
  auto physical = tables.physical.find(handle);
  if (physical == tables.physical.end() || physical->second.handle_references == 0) {
    return Status::kInvalidValue;
  }
  if (offset > physical->second.bytes || bytes > physical->second.bytes - offset)
    return Status::kInvalidValue;
  if (!Reserved(tables, address, bytes) || AnyMapping(tables, address, bytes)) return Status::kInvalidValue;
  ++physical->second.mappings;
  tables.mappings[address] = {bytes, handle};
  state.ranges[address] = {bytes, bytes, physical->second.device, RangeKind::kMapped};
  report::Add(report::Count::kMappings);
  return Status::kOk;
}

Status Unmap(uint64_t address, uint64_t bytes) {
  if (Forked()) return Status::kForked;
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  Tables& tables = TheTables();
  if (bytes == 0 || !ExactlyMapped(tables, address, bytes)) return Status::kInvalidValue;
  for (uint64_t end = address + bytes; address < end;) {
    auto mapping = tables.mappings.find(address);
    uint64_t next = address + mapping->second.bytes;
    auto physical = tables.physical.find(mapping->second.handle);
    ForgetStored(state, address, mapping->second.bytes);
    state.ranges.erase(address);
    tables.mappings.erase(mapping);
    --physical->second.mappings;
    ReleaseIfUnused(state, tables, physical);
    address = next;
  }
  return Status::kOk;
}

Status SetAccess(uint64_t address, uint64_t bytes) {
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  return bytes != 0 && ExactlyMapped(TheTables(), address, bytes) ? Status::kOk : Status::kInvalidValue;
}

}  // namespace vramtrace::simulator
