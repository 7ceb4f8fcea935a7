#include "analyzer/allocator/device_memory.h"

#include <algorithm>

#include "analyzer/allocator/size_classes.h"

namespace vramtrace::allocator {
namespace {

constexpr Address kFirstAddress = Address{1} << 62;  // above any that a driver gives
constexpr Bytes kAlignment = 2 * kMiB;
constexpr Bytes kKiB = 1024;

}  // namespace

Bytes NvidiaCharge(Bytes bytes) {
  if (bytes > kMiB) return RoundUp(bytes, 2 * kMiB);
  if (bytes > 512 * kKiB) return kMiB;
  return std::max(8 * kKiB, RoundUp(bytes + bytes / 16, 8 * kKiB));
}

CardMemory::CardMemory(const CardOptions& options)
    : options_(options), used_elsewhere_(options.used_elsewhere), next_(kFirstAddress) {}

bool CardMemory::Charge(Bytes bytes) {
  const Bytes taken = used_ + used_elsewhere_;
  if (taken > options_.total || bytes > options_.total - taken) return false;
  used_ += bytes;
  return true;
}

std::optional<Address> CardMemory::Allocate(Bytes bytes) {
  if (bytes > options_.total || !Charge(options_.charge(bytes))) return std::nullopt;
  return PlaceAddresses(bytes);
}

void CardMemory::Free(Address address, Bytes bytes) {
  used_ -= options_.charge(bytes);
  ReturnAddresses(address, bytes);
}

Address CardMemory::ReserveRange(Bytes bytes) { return PlaceAddresses(bytes); }

void CardMemory::ReleaseRange(Address address, Bytes bytes) { ReturnAddresses(address, bytes); }

bool CardMemory::MapPages(Address, Bytes page, std::uint64_t count) { return Charge(page * count); }

void CardMemory::UnmapPages(Address, Bytes page, std::uint64_t count) { used_ -= page * count; }

MemoryInfo CardMemory::Info() const {
  const Bytes taken = std::min(options_.total, used_ + used_elsewhere_);
  return {options_.total - taken, options_.total};
}

Address CardMemory::PlaceAddresses(Bytes bytes) {
  const Bytes length = RoundUp(bytes, kAlignment);
  for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
    if (hole->second < length) continue;
    const auto [address, size] = *hole;
    holes_.erase(hole);
    if (size > length) holes_.emplace(address + length, size - length);
    return address;
  }
  const Address address = next_;
  next_ += length;
  return address;
}

void CardMemory::ReturnAddresses(Address address, Bytes bytes) {
  if (options_.order == AddressOrder::kRising) return;
  Bytes length = RoundUp(bytes, kAlignment);
  auto after = holes_.lower_bound(address);
  if (after != holes_.end() && after->first == address + length) {
    length += after->second;
    after = holes_.erase(after);
  }
  if (after != holes_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == address) {
      before->second += length;
      return;
    }
  }
  holes_.emplace(address, length);
}

Address GivenAddresses::Next(Address otherwise) {
  if (next_.empty()) return otherwise;
  const Address address = next_.front();
  next_.pop_front();
  given_to_below_[address] = otherwise;
  return address;
}

std::optional<Address> GivenAddresses::Allocate(Bytes bytes) {
  const std::optional<Address> address = below_.Allocate(bytes);
  return address ? std::optional(Next(*address)) : std::nullopt;
}

void GivenAddresses::Free(Address address, Bytes bytes) {
  const auto given = given_to_below_.find(address);
  below_.Free(given == given_to_below_.end() ? address : given->second, bytes);
  if (given != given_to_below_.end()) given_to_below_.erase(given);
}

Address GivenAddresses::ReserveRange(Bytes bytes) { return Next(below_.ReserveRange(bytes)); }

void GivenAddresses::ReleaseRange(Address address, Bytes bytes) {
  const auto given = given_to_below_.find(address);
  below_.ReleaseRange(given == given_to_below_.end() ? address : given->second, bytes);
  if (given != given_to_below_.end()) given_to_below_.erase(given);
}

bool GivenAddresses::MapPages(Address address, Bytes page, std::uint64_t count) {
  return below_.MapPages(address, page, count);
}

void GivenAddresses::UnmapPages(Address address, Bytes page, std::uint64_t count) {
  below_.UnmapPages(address, page, count);
}

}  // namespace vramtrace::allocator
