#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "analyzer/allocator/units.h"

namespace vramtrace::allocator {

struct MemoryInfo {  // as cudaMemGetInfo answers
  Bytes free = 0;
  Bytes total = 0;
};

// What the allocator asks of the driver: the plug-in for capacity, the driver's charging rule and addresses.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  // cudaMalloc; nullopt when it would answer out of memory.
  [[nodiscard]] virtual std::optional<Address> Allocate(Bytes bytes) = 0;
  virtual void Free(Address address, Bytes bytes) = 0;

  // Address space of an expandable segment, which costs no memory, and the pages mapped into it.
  [[nodiscard]] virtual Address ReserveRange(Bytes bytes) = 0;
  virtual void ReleaseRange(Address address, Bytes bytes) = 0;
  // All pages or none.
  [[nodiscard]] virtual bool MapPages(Address address, Bytes page, std::uint64_t count) = 0;
  virtual void UnmapPages(Address address, Bytes page, std::uint64_t count) = 0;

  [[nodiscard]] virtual MemoryInfo Info() const = 0;
};

// What the driver takes for one cudaMalloc of `bytes`: whole 2 MiB pages above 1 MiB, one page of 1 MiB above
// 512 KiB, else the size and a sixteenth in steps of 8 KiB (published measurements with cudaMemGetInfo; no
// difference for the caching allocator, which asks for multiples of 2 MiB only).
[[nodiscard]] Bytes NvidiaCharge(Bytes bytes);

enum class AddressOrder : std::uint8_t {
  kRising,      // never used again: among equal blocks the oldest segment is the first choice
  kLowestFree,  // the lowest hole that is large enough
};

struct CardOptions {
  Bytes total = 0;           // as cudaMemGetInfo gives it
  Bytes used_elsewhere = 0;  // context, libraries, other processes
  AddressOrder order = AddressOrder::kRising;
  Bytes (*charge)(Bytes) = NvidiaCharge;
};

// A card of a given capacity.
class CardMemory final : public DeviceMemory {
 public:
  explicit CardMemory(const CardOptions& options);

  [[nodiscard]] std::optional<Address> Allocate(Bytes bytes) override;
  void Free(Address address, Bytes bytes) override;
  [[nodiscard]] Address ReserveRange(Bytes bytes) override;
  void ReleaseRange(Address address, Bytes bytes) override;
  [[nodiscard]] bool MapPages(Address address, Bytes page, std::uint64_t count) override;
  void UnmapPages(Address address, Bytes page, std::uint64_t count) override;
  [[nodiscard]] MemoryInfo Info() const override;

  // Memory that others take or give back while the program runs: lazily loaded code, NCCL buffers.
  void SetUsedElsewhere(Bytes bytes) { used_elsewhere_ = bytes; }

 private:
  [[nodiscard]] Address PlaceAddresses(Bytes bytes);
  void ReturnAddresses(Address address, Bytes bytes);
  [[nodiscard]] bool Charge(Bytes bytes);

  CardOptions options_;
  Bytes used_elsewhere_;
  Bytes used_ = 0;
  Address next_;
  std::map<Address, Bytes> holes_;
};

// Addresses given in advance, as they were recorded; capacity is that of `below`. To repeat a recorded run
// exactly, where equal blocks are told apart by the driver's addresses.
class GivenAddresses final : public DeviceMemory {
 public:
  explicit GivenAddresses(DeviceMemory& below) : below_(below) {}

  // The address of the next segment or range. Without one, `below` decides.
  void Give(Address address) { next_.push_back(address); }
  void Forget() { next_.clear(); }
  [[nodiscard]] std::size_t left() const { return next_.size(); }

  [[nodiscard]] std::optional<Address> Allocate(Bytes bytes) override;
  void Free(Address address, Bytes bytes) override;
  [[nodiscard]] Address ReserveRange(Bytes bytes) override;
  void ReleaseRange(Address address, Bytes bytes) override;
  [[nodiscard]] bool MapPages(Address address, Bytes page, std::uint64_t count) override;
  void UnmapPages(Address address, Bytes page, std::uint64_t count) override;
  [[nodiscard]] MemoryInfo Info() const override { return below_.Info(); }

 private:
  [[nodiscard]] Address Next(Address otherwise);

  DeviceMemory& below_;
  std::deque<Address> next_;
  std::map<Address, Address> given_to_below_;
};

}  // namespace vramtrace::allocator
