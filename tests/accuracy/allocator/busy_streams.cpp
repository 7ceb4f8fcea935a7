// Preloaded before the simulated device, whose streams are always done: a test can make a stream busy, so
// that its events are not ready. The events of CUDA 12 and 13 go to the library of that version.
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

namespace {

constexpr int kErrorNotReady = 600;  // cudaErrorNotReady
constexpr int kErrorUnknown = 999;   // cudaErrorUnknown

std::mutex mutex;
std::unordered_set<const void*> busy;
std::unordered_map<const void*, const void*> stream_of_event;
const char* version = "libcudart.so.13";

template <typename Function>
Function Next(const char* name) {
  auto* function = reinterpret_cast<Function>(dlvsym(RTLD_NEXT, name, version));
  if (function == nullptr) std::fprintf(stderr, "busy_streams: no %s of %s\n", name, version);
  return function;
}

}  // namespace

extern "C" {

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int cudaEventRecord(void* event, void* stream) {
  {
    const std::lock_guard lock(mutex);
    stream_of_event[event] = stream;
  }
  auto* next = Next<int (*)(void*, void*)>("cudaEventRecord");
  return next != nullptr ? next(event, stream) : kErrorUnknown;
}

EXPORTED int cudaEventQuery(void* event) {
  {
    const std::lock_guard lock(mutex);
    const auto stream = stream_of_event.find(event);
    if (stream != stream_of_event.end() && busy.contains(stream->second)) return kErrorNotReady;
  }
  auto* next = Next<int (*)(void*)>("cudaEventQuery");
  return next != nullptr ? next(event) : kErrorUnknown;
}

EXPORTED void vramtrace_set_busy(void* stream, int is_busy) {
  const std::lock_guard lock(mutex);
  if (is_busy != 0) {
    busy.insert(stream);
  } else {
    busy.erase(stream);
  }
}

EXPORTED void vramtrace_set_cuda_major(int major) {
  version = major == 12 ? "libcudart.so.12" : "libcudart.so.13";
}
}
