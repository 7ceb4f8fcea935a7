#pragma once
// Descriptors that live in a block of the caller's. cuBLASLt's descriptors are "semi-opaque": a program may
// place one in its own memory, copy it by value and never destroy it, so the values must lie in the block
// itself and no heap may hang on it.

#include <cublasLt.h>

#include <array>
#include <cstdint>
#include <cstring>

namespace vramtrace::simulator::cublaslt {

struct Row {
  int attribute;
  uint32_t bytes;
  uint64_t initial;  // bit pattern, low bytes first
};

// `Table` has `static constexpr std::array<Row, n> kRows`: the attributes of one descriptor type with the
// sizes and defaults that cublasLt.h documents; `kMark` tells descriptor types apart.
template <typename Table, typename Block>
class PackedDescriptor {
 public:
  // CUBLAS_STATUS_ALLOC_FAILED when the block is too small.
  static cublasStatus_t Initialise(Block* block, size_t block_bytes) {
    if (block == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    if (block_bytes < kBytes) return CUBLAS_STATUS_ALLOC_FAILED;
    std::memset(block, 0, block_bytes);
    const uint64_t mark = Table::kMark;
    std::memcpy(block, &mark, sizeof mark);
    for (const Row& row : Table::kRows) Write(block, row.attribute, row.initial);
    return CUBLAS_STATUS_SUCCESS;
  }

  [[nodiscard]] static bool Valid(const Block* block) {
    return block != nullptr && std::memcmp(block, &kMark, sizeof kMark) == 0;
  }

  static cublasStatus_t Set(Block* block, int attribute, const void* value, size_t bytes) {
    const Slot slot = Find(attribute);
    if (!Valid(block) || value == nullptr || slot.bytes == 0 || bytes != slot.bytes) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    std::memcpy(reinterpret_cast<unsigned char*>(block) + slot.offset, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  }

  // As documented: with `bytes` 0, *written receives the size that is needed.
  static cublasStatus_t Get(const Block* block, int attribute, void* value, size_t bytes, size_t* written) {
    const Slot slot = Find(attribute);
    if (!Valid(block) || slot.bytes == 0) return CUBLAS_STATUS_INVALID_VALUE;
    if (bytes == 0) {
      if (written == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
      *written = slot.bytes;
      return CUBLAS_STATUS_SUCCESS;
    }
    if (value == nullptr || bytes < slot.bytes) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(value, reinterpret_cast<const unsigned char*>(block) + slot.offset, slot.bytes);
    if (written != nullptr) *written = slot.bytes;
    return CUBLAS_STATUS_SUCCESS;
  }

  static void Write(Block* block, int attribute, uint64_t bits) {
    const Slot slot = Find(attribute);
    std::memcpy(reinterpret_cast<unsigned char*>(block) + slot.offset, &bits, slot.bytes);
  }

  [[nodiscard]] static uint64_t Read(const Block* block, int attribute) {
    const Slot slot = Find(attribute);
    uint64_t bits = 0;
    std::memcpy(&bits, reinterpret_cast<const unsigned char*>(block) + slot.offset, slot.bytes);
    return bits;
  }

  // An attribute that a newer header declares and this table lacks.
  [[nodiscard]] static bool Knows(int attribute) { return Find(attribute).bytes != 0; }

 private:
  struct Slot {
    size_t offset = 0;
    size_t bytes = 0;
  };

  static constexpr uint64_t kMark = Table::kMark;

  static constexpr size_t Total() {
    size_t total = sizeof(uint64_t);
    for (const Row& row : Table::kRows) total += row.bytes;
    return total;
  }
  static constexpr size_t kBytes = Total();
  static_assert(kBytes <= sizeof(Block), "the attributes must fit the block the header gives them");

  static Slot Find(int attribute) {
    size_t offset = sizeof(uint64_t);
    for (const Row& row : Table::kRows) {
      if (row.attribute == attribute) return {offset, row.bytes};
      offset += row.bytes;
    }
    return {};
  }
};

}  // namespace vramtrace::simulator::cublaslt
