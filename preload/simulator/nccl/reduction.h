#pragma once
// What a reduction over peers that all hold the same values gives. Small buffers are really computed, so that
// counts, flags and averaged losses come out right; larger ones are copied.

#include <nccl.h>

#include <cstdint>

namespace vramtrace::simulator::nccl {

inline constexpr uint64_t kComputedBytes = 64 << 10;

// Reduces `count` elements of identical peers in place: sum gives ranks times the value, product its power,
// minimum, maximum and average the value itself. False for an operation or type that is unknown.
bool ReduceIdentical(void* values, uint64_t count, ncclDataType_t type, ncclRedOp_t operation, int ranks);

// Puts one more rank's values into those of the ranks before it: scalars of an operation are applied by the
// caller (ScaleBefore), an average is divided at the end (DivideAfter).
void Combine(void* values, const void* others, uint64_t count, ncclDataType_t type, ncclRedOp_t operation);
void ScaleBefore(void* values, uint64_t count, ncclDataType_t type, ncclRedOp_t operation);
void DivideAfter(void* values, uint64_t count, ncclDataType_t type, ncclRedOp_t operation, int ranks);
// False for a type or operation that Combine does not know.
[[nodiscard]] bool CanCombine(ncclDataType_t type, ncclRedOp_t operation);

// An operation that multiplies by `scalar` before it sums.
ncclRedOp_t CreatePreMultiplied(double scalar);
// The scalar of such an operation, 1 for any other.
[[nodiscard]] double ScalarOf(ncclRedOp_t operation);

// One element as a number; 0 for FP8, which is not decoded.
[[nodiscard]] double Load(const void* element, ncclDataType_t type);
void Save(void* element, ncclDataType_t type, double value);

}  // namespace vramtrace::simulator::nccl
