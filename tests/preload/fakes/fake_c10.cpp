// The part of libc10 that the caching allocator calls. FakeForwardedReports() counts what reached it.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "tests/preload/fakes/memory_book.h"

namespace {
std::atomic<int> g_forwarded{0};
}

namespace c10 {

struct Device {
  int8_t type;
  int8_t index;
};

FAKE_EXPORT void reportMemoryUsageToProfiler(void*, int64_t, size_t, size_t, Device) { ++g_forwarded; }
FAKE_EXPORT void reportMemoryUsageToProfiler(void*, int64_t, int64_t, int64_t, Device) { ++g_forwarded; }
FAKE_EXPORT void reportMemoryUsageToProfiler(void*, int64_t, Device) { ++g_forwarded; }
FAKE_EXPORT void reportOutOfMemoryToProfiler(int64_t, size_t, size_t, Device) { ++g_forwarded; }
FAKE_EXPORT void reportOutOfMemoryToProfiler(int64_t, int64_t, int64_t, Device) { ++g_forwarded; }
FAKE_EXPORT void reportOutOfMemoryToProfiler(size_t, size_t, size_t, Device) { ++g_forwarded; }

}  // namespace c10

extern "C" FAKE_EXPORT int FakeForwardedReports() { return g_forwarded; }
