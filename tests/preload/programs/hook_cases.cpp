// hook_cases SYMBOL [PATH]: what a program does to reach one hooked function, once, by one of the paths of
// reached.h. Exit 0: the call answered what it must; 1: it did not; 64: no case for this symbol; 65: the path
// does not lead there. Linked against the fake libraries, or those behind
// them.

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <string>

#include "preload/recorder/hooks/declarations.h"
#include "tests/preload/programs/reached.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

extern "C" int FakeForwardedReports();

// Unqualified calls below go through these pointers.
namespace reached {
namespace {

constexpr size_t kBytes = 4096;
constexpr TorchDevice kGpu = {1, 0};
constexpr TorchDevice kCpu = {0, 0};

void* const kAddress = reinterpret_cast<void*>(0x700000001000);
CUdeviceptr const kPointer = 0x700000001000;

// A call whose function leaves errno as it likes: the program must see that, and the result.
template <typename Function>
bool Succeeds(Function call) {
  return static_cast<int>(call()) == 0;
}

template <typename Function>
bool KeepsErrno(Function call) {
  errno = 0;
  return Succeeds(call) && errno == EDOM;
}

// The runtime's allocations and frees need a device that has been met: a first allocation opens the trace.
bool Meet() {
  void* pointer = nullptr;
  return Succeeds([&] { return cudaMalloc(&pointer, 1 << 20); });
}

template <typename Lookup>
bool HandsOutOurFunction(Lookup lookup) {
  void* function = nullptr;
  if (!Succeeds([&] { return lookup("cuMemCreate", &function); })) return false;
  CUmemAllocationProp properties{};
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemGenericAllocationHandle handle = 0;
  const auto create = reinterpret_cast<decltype(&::cuMemCreate)>(function);
  if (create != &::cuMemCreate || create(&handle, kBytes, &properties, 0) != CUDA_SUCCESS) return false;
  // What is not hooked comes back as it is.
  void* other = nullptr;
  return Succeeds([&] { return lookup("cuDriverGetVersion", &other); }) &&
         other == reinterpret_cast<void*>(&cuDriverGetVersion);
}

bool HandsOutThroughTheLoader() {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  const auto lookup = [driver](const char* symbol, void** function) {
    *function = dlsym(driver, symbol);
    return *function == nullptr ? 1 : 0;
  };
  // What is not there is an error of the caller's, what is there is none.
  if (dlsym(driver, "cuNoSuchFunction") != nullptr || dlerror() == nullptr) return false;
  // RTLD_NEXT still means: behind the one who asks. This program is first, so that it finds the recorder's.
  void* const next = dlsym(RTLD_NEXT, "cuMemCreate");
  void* const any = dlsym(RTLD_DEFAULT, "cuMemCreate");
  return HandsOutOurFunction(lookup) && dlerror() == nullptr &&
         next == reinterpret_cast<void*>(&::cuMemCreate) && any == next &&
         dlsym(RTLD_NEXT, "main") == nullptr;
}

template <typename Report>
bool IsForwarded(Report report) {
  const int before = FakeForwardedReports();
  report();
  return FakeForwardedReports() == before + 1;
}

cudaExtent Extent() { return {100, 4, 2}; }
cudaChannelFormatDesc Channel() { return {32, 0, 0, 0, cudaChannelFormatKindFloat}; }

const std::map<std::string, std::function<bool()>> kCases = {
    {"cudaMalloc",
     [] {
       void* p;
       return KeepsErrno([&] { return cudaMalloc(&p, kBytes); });
     }},
    {"cudaMallocManaged",
     [] {
       void* p;
       return KeepsErrno([&] { return cudaMallocManaged(&p, kBytes, 1); });
     }},
    {"cudaMallocPitch",
     [] {
       void* p;
       size_t pitch;
       return KeepsErrno([&] { return cudaMallocPitch(&p, &pitch, 100, 8); });
     }},
    {"cudaMalloc3D",
     [] {
       cudaPitchedPtr p{};
       return KeepsErrno([&] { return cudaMalloc3D(&p, Extent()); });
     }},
    {"cudaMallocArray",
     [] {
       cudaArray_t a;
       const auto c = Channel();
       return KeepsErrno([&] { return cudaMallocArray(&a, &c, 64, 16, 0); });
     }},
    {"cudaMalloc3DArray",
     [] {
       cudaArray_t a;
       const auto c = Channel();
       return KeepsErrno([&] { return cudaMalloc3DArray(&a, &c, {16, 16, 4}, 0); });
     }},
    {"cudaMallocAsync",
     [] {
       void* p;
       return KeepsErrno([&] { return cudaMallocAsync(&p, kBytes, nullptr); });
     }},
    {"cudaMallocAsync_ptsz",
     [] {
       void* p;
       return KeepsErrno([&] { return cudaMallocAsync_ptsz(&p, kBytes, nullptr); });
     }},
    {"cudaMallocFromPoolAsync",
     [] {
       void* p;
       return KeepsErrno([&] { return cudaMallocFromPoolAsync(&p, kBytes, nullptr, nullptr); });
     }},
    {"cudaMallocFromPoolAsync_ptsz",
     [] {
       void* p;
       return KeepsErrno([&] { return cudaMallocFromPoolAsync_ptsz(&p, kBytes, nullptr, nullptr); });
     }},
    {"cudaIpcOpenMemHandle",
     [] {
       void* p;
       return KeepsErrno([&] { return cudaIpcOpenMemHandle(&p, {}, 0); });
     }},
    {"cudaMallocMipmappedArray",
     [] {
       cudaMipmappedArray_t a;
       const auto c = Channel();
       return KeepsErrno([&] { return cudaMallocMipmappedArray(&a, &c, {683, 0, 0}, 2, 0); });
     }},
    {"cudaExternalMemoryGetMappedBuffer",
     [] {
       void* p;
       cudaExternalMemoryBufferDesc d{};
       d.size = kBytes;
       return KeepsErrno([&] { return cudaExternalMemoryGetMappedBuffer(&p, nullptr, &d); });
     }},
    {"cudaMemPoolImportPointer",
     [] {
       void* p;
       return KeepsErrno([&] { return cudaMemPoolImportPointer(&p, nullptr, nullptr); });
     }},
    {"cudaGraphAddMemAllocNode",
     [] {
       cudaMemAllocNodeParams q{};
       q.bytesize = kBytes;
       return KeepsErrno([&] { return cudaGraphAddMemAllocNode(nullptr, nullptr, nullptr, 0, &q); });
     }},
    {"cudaFreeMipmappedArray",
     [] {
       return Meet() &&
              Succeeds([] { return cudaFreeMipmappedArray(static_cast<cudaMipmappedArray_t>(kAddress)); });
     }},
    {"cudaGraphAddMemFreeNode",
     [] {
       return Meet() &&
              Succeeds([] { return cudaGraphAddMemFreeNode(nullptr, nullptr, nullptr, 0, kAddress); });
     }},
    {"cudaFree",
     [] {
       return Meet() && Succeeds([] { return cudaFree(nullptr); }) &&
              Succeeds([] { return cudaFree(kAddress); });
     }},
    {"cudaFreeArray",
     [] { return Meet() && Succeeds([] { return cudaFreeArray(static_cast<cudaArray_t>(kAddress)); }); }},
    {"cudaFreeAsync", [] { return Meet() && Succeeds([] { return cudaFreeAsync(kAddress, nullptr); }); }},
    {"cudaFreeAsync_ptsz",
     [] { return Meet() && Succeeds([] { return cudaFreeAsync_ptsz(kAddress, nullptr); }); }},
    {"cudaIpcCloseMemHandle",
     [] { return Meet() && Succeeds([] { return cudaIpcCloseMemHandle(kAddress); }); }},
    {"cudaMemPoolTrimTo", [] { return Meet() && Succeeds([] { return cudaMemPoolTrimTo(nullptr, 0); }); }},
    {"cudaMemPoolDestroy", [] { return Meet() && Succeeds([] { return cudaMemPoolDestroy(nullptr); }); }},
    {"cudaDeviceGraphMemTrim", [] { return Meet() && Succeeds([] { return cudaDeviceGraphMemTrim(0); }); }},
    {"cudaMallocHost",
     [] {
       void* p;
       return KeepsErrno([&] { return cudaMallocHost(&p, kBytes); });
     }},
    {"cudaHostAlloc",
     [] {
       void* p;
       return KeepsErrno([&] { return cudaHostAlloc(&p, kBytes, 0); });
     }},
    {"cudaHostRegister", [] { return Succeeds([] { return cudaHostRegister(kAddress, kBytes, 0); }); }},
    {"cudaFreeHost", [] { return Meet() && Succeeds([] { return cudaFreeHost(kAddress); }); }},
    {"cudaHostUnregister", [] { return Meet() && Succeeds([] { return cudaHostUnregister(kAddress); }); }},
    {"cudaMemGetInfo",
     [] {
       size_t f, t;
       return Meet() && Succeeds([&] { return cudaMemGetInfo(&f, &t); }) && t == 1 << 30;
     }},
    {"cudaGetDriverEntryPoint",
     [] {
       return HandsOutOurFunction([](const char* s, void** f) {
         cudaDriverEntryPointQueryResult r;
         return cudaGetDriverEntryPoint(s, f, 0, &r);
       });
     }},
    {"cudaGetDriverEntryPoint_ptsz",
     [] {
       return HandsOutOurFunction([](const char* s, void** f) {
         cudaDriverEntryPointQueryResult r;
         return cudaGetDriverEntryPoint_ptsz(s, f, 0, &r);
       });
     }},
    {"cudaGetDriverEntryPointByVersion",
     [] {
       return HandsOutOurFunction([](const char* s, void** f) {
         cudaDriverEntryPointQueryResult r;
         return cudaGetDriverEntryPointByVersion(s, f, 13000, 0, &r);
       });
     }},
    {"cudaGetDriverEntryPointByVersion_ptsz",
     [] {
       return HandsOutOurFunction([](const char* s, void** f) {
         cudaDriverEntryPointQueryResult r;
         return cudaGetDriverEntryPointByVersion_ptsz(s, f, 13000, 0, &r);
       });
     }},

    {"cuMemAlloc_v2",
     [] {
       CUdeviceptr p;
       return KeepsErrno([&] { return cuMemAlloc_v2(&p, kBytes); });
     }},
    {"cuMemAllocPitch_v2",
     [] {
       CUdeviceptr p;
       size_t pitch;
       return KeepsErrno([&] { return cuMemAllocPitch_v2(&p, &pitch, 100, 8, 4); });
     }},
    {"cuMemAllocManaged",
     [] {
       CUdeviceptr p;
       return KeepsErrno([&] { return cuMemAllocManaged(&p, kBytes, 1); });
     }},
    {"cuMemAllocAsync",
     [] {
       CUdeviceptr p;
       return KeepsErrno([&] { return cuMemAllocAsync(&p, kBytes, nullptr); });
     }},
    {"cuMemAllocAsync_ptsz",
     [] {
       CUdeviceptr p;
       return KeepsErrno([&] { return cuMemAllocAsync_ptsz(&p, kBytes, nullptr); });
     }},
    {"cuMemAllocFromPoolAsync",
     [] {
       CUdeviceptr p;
       return KeepsErrno([&] { return cuMemAllocFromPoolAsync(&p, kBytes, nullptr, nullptr); });
     }},
    {"cuMemAllocFromPoolAsync_ptsz",
     [] {
       CUdeviceptr p;
       return KeepsErrno([&] { return cuMemAllocFromPoolAsync_ptsz(&p, kBytes, nullptr, nullptr); });
     }},
    {"cuMemCreate",
     [] {
       CUmemGenericAllocationHandle h;
       CUmemAllocationProp q{};
       q.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
       return KeepsErrno([&] { return cuMemCreate(&h, kBytes, &q, 0); });
     }},
    {"cuIpcOpenMemHandle_v2",
     [] {
       CUdeviceptr p;
       return KeepsErrno([&] { return cuIpcOpenMemHandle_v2(&p, {}, 0); });
     }},
    {"cuArrayCreate_v2",
     [] {
       CUarray a;
       CUDA_ARRAY_DESCRIPTOR d{64, 16, CU_AD_FORMAT_FLOAT, 1};
       return KeepsErrno([&] { return cuArrayCreate_v2(&a, &d); });
     }},
    {"cuArray3DCreate_v2",
     [] {
       CUarray a;
       CUDA_ARRAY3D_DESCRIPTOR d{16, 16, 4, CU_AD_FORMAT_FLOAT, 1, 0};
       return KeepsErrno([&] { return cuArray3DCreate_v2(&a, &d); });
     }},
    {"cuMipmappedArrayCreate",
     [] {
       CUmipmappedArray a;
       CUDA_ARRAY3D_DESCRIPTOR d{683, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0};  // 683 and 341 elements
       return KeepsErrno([&] { return cuMipmappedArrayCreate(&a, &d, 2); });
     }},
    {"cuExternalMemoryGetMappedBuffer",
     [] {
       CUdeviceptr p;
       CUDA_EXTERNAL_MEMORY_BUFFER_DESC d{};
       d.size = kBytes;
       return KeepsErrno([&] { return cuExternalMemoryGetMappedBuffer(&p, nullptr, &d); });
     }},
    {"cuMemPoolImportPointer",
     [] {
       CUdeviceptr p;
       return KeepsErrno([&] { return cuMemPoolImportPointer(&p, nullptr, nullptr); });
     }},
    {"cuMemImportFromShareableHandle",
     [] {
       CUmemGenericAllocationHandle h;
       return KeepsErrno([&] {
         return cuMemImportFromShareableHandle(&h, nullptr, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
       });
     }},
    {"cuGraphAddMemAllocNode",
     [] {
       CUDA_MEM_ALLOC_NODE_PARAMS q{};
       q.bytesize = kBytes;
       return KeepsErrno([&] { return cuGraphAddMemAllocNode(nullptr, nullptr, nullptr, 0, &q); });
     }},
    {"cuMipmappedArrayDestroy",
     [] {
       return Meet() &&
              Succeeds([] { return cuMipmappedArrayDestroy(static_cast<CUmipmappedArray>(kAddress)); });
     }},
    {"cuGraphAddMemFreeNode",
     [] {
       return Meet() &&
              Succeeds([] { return cuGraphAddMemFreeNode(nullptr, nullptr, nullptr, 0, kPointer); });
     }},
    {"cuMemFree_v2", [] { return Meet() && Succeeds([] { return cuMemFree_v2(kPointer); }); }},
    {"cuMemFreeAsync", [] { return Meet() && Succeeds([] { return cuMemFreeAsync(kPointer, nullptr); }); }},
    {"cuMemFreeAsync_ptsz",
     [] { return Meet() && Succeeds([] { return cuMemFreeAsync_ptsz(kPointer, nullptr); }); }},
    {"cuMemRelease", [] { return Meet() && Succeeds([] { return cuMemRelease(kPointer); }); }},
    {"cuIpcCloseMemHandle", [] { return Meet() && Succeeds([] { return cuIpcCloseMemHandle(kPointer); }); }},
    {"cuArrayDestroy",
     [] { return Meet() && Succeeds([] { return cuArrayDestroy(static_cast<CUarray>(kAddress)); }); }},
    {"cuMemPoolTrimTo", [] { return Meet() && Succeeds([] { return cuMemPoolTrimTo(nullptr, 0); }); }},
    {"cuMemPoolDestroy", [] { return Meet() && Succeeds([] { return cuMemPoolDestroy(nullptr); }); }},
    {"cuDeviceGraphMemTrim", [] { return Meet() && Succeeds([] { return cuDeviceGraphMemTrim(0); }); }},
    {"cuMemMap", [] { return Meet() && Succeeds([] { return cuMemMap(kPointer, kBytes, 512, 77, 0); }); }},
    {"cuMemUnmap", [] { return Meet() && Succeeds([] { return cuMemUnmap(kPointer, kBytes); }); }},
    {"cuMemAllocHost_v2",
     [] {
       void* p;
       return KeepsErrno([&] { return cuMemAllocHost_v2(&p, kBytes); });
     }},
    {"cuMemHostAlloc",
     [] {
       void* p;
       return KeepsErrno([&] { return cuMemHostAlloc(&p, kBytes, 0); });
     }},
    {"cuMemHostRegister_v2",
     [] { return Succeeds([] { return cuMemHostRegister_v2(kAddress, kBytes, 0); }); }},
    {"cuMemFreeHost", [] { return Meet() && Succeeds([] { return cuMemFreeHost(kAddress); }); }},
    {"cuMemHostUnregister", [] { return Meet() && Succeeds([] { return cuMemHostUnregister(kAddress); }); }},
    {"cuMemGetInfo_v2",
     [] {
       size_t f, t;
       return Meet() && Succeeds([&] { return cuMemGetInfo_v2(&f, &t); }) && t == 1 << 30;
     }},
    {"cuGetProcAddress",
     [] {
       return HandsOutOurFunction(
           [](const char* s, void** f) { return cuGetProcAddress_v1(s, f, 13000, 0); });
     }},
    {"cuGetProcAddress_v2",
     [] {
       return HandsOutOurFunction(
           [](const char* s, void** f) { return cuGetProcAddress_v2(s, f, 13000, 0, nullptr); });
     }},

    {"dlsym", [] { return HandsOutThroughTheLoader(); }},

    {"_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE",
     [] {
       return IsForwarded([] { ReportMemoryUsage(kAddress, 512, 512, 2 << 20, kGpu); }) &&
              IsForwarded([] { ReportMemoryUsage(kAddress, 4096, 4096, 4096, kCpu); }) &&
              IsForwarded([] { ReportMemoryUsage(kAddress, -512, 0, 2 << 20, kGpu); });
     }},
    {"_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE",
     [] {
       return IsForwarded([] { ReportMemoryUsageSigned(kAddress, 512, 512, 2 << 20, kGpu); }) &&
              IsForwarded([] { ReportMemoryUsageSigned(kAddress, -512, 0, 2 << 20, kGpu); });
     }},
    {"_ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE",
     [] { return Meet() && IsForwarded([] { ReportMemoryUsageShort(kAddress, 512, kGpu); }); }},
    {"_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE",
     [] { return IsForwarded([] { ReportOutOfMemory(512, 0, 0, kGpu); }); }},
    {"_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE",
     [] { return IsForwarded([] { ReportOutOfMemorySigned(512, 0, 0, kGpu); }); }},
    {"_ZN3c1027reportOutOfMemoryToProfilerEmmmNS_6DeviceE",
     [] { return IsForwarded([] { ReportOutOfMemoryUnsigned(512, 0, 0, kGpu); }); }},
};

}  // namespace
}  // namespace reached

// As a plugin: the program that opens it has nothing to do with CUDA.
extern "C" __attribute__((visibility("default"))) int RunHookCase(const char* symbol, const char* path) {
  const auto row = reached::kCases.find(symbol);
  if (row == reached::kCases.end()) {
    std::fprintf(stderr, "no case for %s\n", symbol);
    return 64;
  }
  if (!reached::Reach(symbol, path)) return 65;
  return row->second() ? 0 : 1;
}

extern "C" __attribute__((visibility("default"))) int StartCuda() { return static_cast<int>(cuInit(0)); }

#ifndef VRAMTRACE_PLUGIN
int main(int argc, char** argv) {
  if (argc < 2) return 64;
  // As every program that uses the driver itself; the runtime does it for the others.
  if (argc > 2 && StartCuda() != 0) return 66;
  return RunHookCase(argv[1], argc > 2 ? argv[2] : "direct");
}
#endif
