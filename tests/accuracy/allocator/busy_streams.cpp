// Preloaded before the simulated device, whose streams are always done: a test can make a stream busy, so
// that its events are not ready. The events of CUDA 12 and 13 go to the library of that version.
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <queue>
#include <unordered_map>
#include <unordered_set>

namespace {

constexpr int kErrorNotReady = 600;  // cudaErrorNotReady
constexpr int kErrorUnknown = 999;   // cudaErrorUnknown

std::mutex mutex;
std::unordered_set<const void*> busy;
std::unordered_map<const void*, const void*> stream_of_event;
const char* version = "libcudart.so.13";
std::queue<std::uint64_t> ranges;
int (*reserve)(std::uint64_t*, std::size_t, std::size_t, std::uint64_t, unsigned long long) = nullptr;

template <typename Function>
Function Next(const char* name) {
  auto* function = reinterpret_cast<Function>(dlvsym(RTLD_NEXT, name, version));
  if (function == nullptr) std::fprintf(stderr, "busy_streams: no %s of %s\n", name, version);
  return function;
}

int Reserve(std::uint64_t* address, std::size_t size, std::size_t alignment, std::uint64_t hint,
            unsigned long long flags) {
  const int status = reserve(address, size, alignment, hint, flags);
  if (status == 0) ranges.push(*address);
  return status;
}

// Puts itself between PyTorch and cuMemAddressReserve, which PyTorch asks the runtime for.
void Intercept(const char* symbol, void** function) {
  if (std::strcmp(symbol, "cuMemAddressReserve") != 0 || function == nullptr || *function == nullptr) return;
  reserve = reinterpret_cast<decltype(reserve)>(*function);
  *function = reinterpret_cast<void*>(&Reserve);
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

EXPORTED int cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                     int* status) {
  auto* next = Next<int (*)(const char*, void**, unsigned long long, int*)>("cudaGetDriverEntryPoint");
  const int error = next != nullptr ? next(symbol, function, flags, status) : kErrorUnknown;
  if (error == 0) Intercept(symbol, function);
  return error;
}

EXPORTED int cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned cuda_version,
                                              unsigned long long flags, int* status) {
  auto* next = Next<int (*)(const char*, void**, unsigned, unsigned long long, int*)>(
      "cudaGetDriverEntryPointByVersion");
  const int error = next != nullptr ? next(symbol, function, cuda_version, flags, status) : kErrorUnknown;
  if (error == 0) Intercept(symbol, function);
  return error;
}

// The ranges that were reserved, oldest first, each once; 0 for no more.
EXPORTED std::uint64_t vramtrace_take_range() {
  if (ranges.empty()) return 0;
  const std::uint64_t range = ranges.front();
  ranges.pop();
  return range;
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
