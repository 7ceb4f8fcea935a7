#pragma once
// What the fake libraries share: addresses to hand out, and a way to make one function fail.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace fake {

inline uintptr_t NextAddress(size_t bytes) {
  static uintptr_t next = 0x700000000000;
  return __atomic_fetch_add(&next, (bytes + 511) / 512 * 512, __ATOMIC_RELAXED);
}

// FAKE_CUDA_FAIL names the function that answers "out of memory".
inline bool Fails(const char* function) {
  const char* name = std::getenv("FAKE_CUDA_FAIL");
  return name != nullptr && std::strcmp(name, function) == 0;
}

}  // namespace fake

#define FAKE_EXPORT __attribute__((visibility("default")))
