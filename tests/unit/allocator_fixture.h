#pragma once

#include <string_view>
#include <variant>

#include "analyzer/allocator/caching_allocator.h"
#include "gtest/gtest.h"

namespace vramtrace::allocator {

inline constexpr PyTorchVersion kNewest{2, 15};

inline const VersionRules& Rules(PyTorchVersion version = kNewest) { return *FindVersion(version); }

inline Settings Parse(std::string_view text, PyTorchVersion version = kNewest) {
  auto parsed = ParseSettings(text, Rules(version));
  if (const auto* error = std::get_if<SettingsError>(&parsed)) {
    ADD_FAILURE() << error->option << ": expected " << error->expected;
    return {};
  }
  return std::get<Settings>(parsed);
}

// An allocator on a card of its own.
struct Device {
  explicit Device(Bytes total, std::string_view options = "", PyTorchVersion version = kNewest)
      : memory({.total = total}), allocator(Parse(options, version), Rules(version), memory, events) {}

  Allocation Allocate(Bytes bytes, StreamId stream = StreamId::kDefault, PoolId pool = PoolId::kDefault) {
    const AllocationResult result = allocator.Allocate(bytes, stream, pool);
    if (const auto* allocation = std::get_if<Allocation>(&result)) return *allocation;
    ADD_FAILURE() << "no memory for " << bytes << " bytes";
    return {};
  }
  OutOfMemory Fail(Bytes bytes, PoolId pool = PoolId::kDefault) {
    const AllocationResult result = allocator.Allocate(bytes, StreamId::kDefault, pool);
    if (const auto* failure = std::get_if<OutOfMemory>(&result)) return *failure;
    ADD_FAILURE() << bytes << " bytes were found";
    return {};
  }
  [[nodiscard]] std::int64_t reserved() const { return allocator.statistics().all.reserved_bytes.current; }
  [[nodiscard]] std::int64_t allocated() const { return allocator.statistics().all.allocated_bytes.current; }
  [[nodiscard]] std::int64_t retries() const { return allocator.statistics().num_alloc_retries; }

  CardMemory memory;
  FinishedStreams events;
  CachingAllocator allocator;
};

}  // namespace vramtrace::allocator
