// Modules, functions and launches. Code is not read: a module has every function that is asked for.
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "preload/simulator/core/kernels.h"
#include "preload/simulator/cuda/driver.h"

using namespace vramtrace::simulator;
using namespace vramtrace::simulator::driver;

namespace {

struct Module {
  std::map<std::string, std::unique_ptr<char>> functions;  // the char's address is the handle
};

struct Modules {
  std::mutex mutex;
  std::map<void*, std::unique_ptr<Module>> all;
};

Modules& TheModules() {
  static auto* modules = new Modules;
  return *modules;
}

template <class Handle>
CUresult Load(Handle* handle) {
  if (Status status = EnsureContext(); status != Status::kOk) return Result(status);
  Modules& modules = TheModules();
  std::lock_guard lock(modules.mutex);
  auto module = std::make_unique<Module>();
  *handle = reinterpret_cast<Handle>(module.get());
  modules.all[module.get()] = std::move(module);
  return CUDA_SUCCESS;
}

CUresult Unload(void* handle) {
  Modules& modules = TheModules();
  std::lock_guard lock(modules.mutex);
  return modules.all.erase(handle) == 0 ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

template <class Handle>
CUresult GetFunction(Handle* function, void* module, const char* name) {
  Modules& modules = TheModules();
  std::lock_guard lock(modules.mutex);
  auto found = modules.all.find(module);
  if (found == modules.all.end()) return CUDA_ERROR_INVALID_HANDLE;
  auto [entry, added] = found->second->functions.try_emplace(name);
  if (added) {
    entry->second = std::make_unique<char>();
    RegisterLoadedKernel(entry->second.get(), name);
  }
  *function = reinterpret_cast<Handle>(entry->second.get());
  return CUDA_SUCCESS;
}

bool Readable(const char* path) {
  FILE* file = std::fopen(path, "re");
  if (file != nullptr) std::fclose(file);
  return file != nullptr;
}

CUresult FunctionAttribute(int* value, CUfunction_attribute attribute, const void* function, int device) {
  KernelFacts facts = FactsOf(function);
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = facts.threads_per_block;
      break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = facts.static_shared_bytes;
      break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = facts.registers;
      break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = CodeVersion(device);
      break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = facts.max_dynamic_shared_bytes;
      break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *value = -1;
      break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
      *value = 0;
      break;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}

CUresult SetFunctionAttribute(const void* function, int device, CUfunction_attribute attribute, int value) {
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_SUCCESS;  // a hint
  return Result(SetMaxDynamicShared(function, device, value));
}

}  // namespace

extern "C" {

CUresult cuModuleLoad(CUmodule* module, const char* path) {
  return Readable(path) ? Load(module) : CUDA_ERROR_FILE_NOT_FOUND;
}

CUresult cuModuleLoadData(CUmodule* module, const void* /*image*/) { return Load(module); }

CUresult cuModuleLoadDataEx(CUmodule* module, const void* /*image*/, unsigned /*count*/,
                            CUjit_option* /*options*/, void** /*values*/) {
  return Load(module);
}

CUresult cuModuleLoadFatBinary(CUmodule* module, const void* /*image*/) { return Load(module); }

CUresult cuModuleUnload(CUmodule module) { return Unload(module); }

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return GetFunction(function, module, name);
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  *mode = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary* library, const void* /*code*/, CUjit_option* /*jit_options*/,
                           void** /*jit_values*/, unsigned /*jit_count*/, CUlibraryOption* /*options*/,
                           void** /*values*/, unsigned /*count*/) {
  return Load(library);
}

CUresult cuLibraryUnload(CUlibrary library) { return Unload(library); }

CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return GetFunction(kernel, library, name);
}

CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  *module = reinterpret_cast<CUmodule>(library);  // one table holds both
  return CUDA_SUCCESS;
}

CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  *function = reinterpret_cast<CUfunction>(kernel);
  return CUDA_SUCCESS;
}

CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device) {
  return FunctionAttribute(value, attribute, kernel, device);
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device) {
  return SetFunctionAttribute(kernel, device, attribute, value);
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  return FunctionAttribute(value, attribute, function, CurrentDevice());
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  return SetFunctionAttribute(function, CurrentDevice(), attribute, value);
}

CUresult cuFuncSetCacheConfig(CUfunction /*function*/, CUfunc_cache /*configuration*/) {
  return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char** name, CUfunction function) {
  *name = KernelName(function);
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned /*grid_x*/, unsigned /*grid_y*/, unsigned /*grid_z*/,
                        unsigned /*block_x*/, unsigned /*block_y*/, unsigned /*block_z*/, unsigned /*shared*/,
                        CUstream stream, void** /*arguments*/, void** /*extra*/) {
  return Result(Launch(function, stream));
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* configuration, CUfunction function, void** /*arguments*/,
                          void** /*extra*/) {
  return Result(Launch(function, configuration->hStream));
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned /*grid_x*/, unsigned /*grid_y*/,
                                   unsigned /*grid_z*/, unsigned /*block_x*/, unsigned /*block_y*/,
                                   unsigned /*block_z*/, unsigned /*shared*/, CUstream stream,
                                   void** /*arguments*/) {
  return Result(Launch(function, stream));
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int threads,
                                                     size_t shared) {
  return Result(Occupancy(CurrentDevice(), FactsOf(function), threads, shared, blocks));
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function, int threads,
                                                              size_t shared, unsigned /*flags*/) {
  return Result(Occupancy(CurrentDevice(), FactsOf(function), threads, shared, blocks));
}

CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction function,
                                      const CUlaunchConfig* configuration) {
  const Device* device = DeviceAt(CurrentDevice());
  if (device == nullptr || device->gpu->compute_major < 9) return CUDA_ERROR_NOT_SUPPORTED;
  unsigned size = 1;
  for (unsigned i = 0; i < configuration->numAttrs; ++i) {
    if (configuration->attrs[i].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
    const auto& dimension = configuration->attrs[i].value.clusterDim;
    size = dimension.x * dimension.y * dimension.z;
  }
  if (size == 0) return CUDA_ERROR_INVALID_VALUE;
  unsigned threads = configuration->blockDimX * configuration->blockDimY * configuration->blockDimZ;
  int blocks = 0;
  Status status = Occupancy(CurrentDevice(), FactsOf(function), static_cast<int>(threads),
                            configuration->sharedMemBytes, &blocks);
  if (status == Status::kOk) *clusters = blocks * device->multiprocessors / static_cast<int>(size);
  return Result(status);
}

// A descriptor for the tensor memory accelerator, which kernels alone read: any bytes will do.
CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType /*type*/, cuuint32_t rank,
                                void* address, const cuuint64_t* /*dimensions*/,
                                const cuuint64_t* /*strides*/, const cuuint32_t* /*box*/,
                                const cuuint32_t* /*element_strides*/, CUtensorMapInterleave /*interleave*/,
                                CUtensorMapSwizzle /*swizzle*/, CUtensorMapL2promotion /*promotion*/,
                                CUtensorMapFloatOOBfill /*fill*/) {
  if (rank == 0 || rank > 5 || address == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *map = {};
  return CUDA_SUCCESS;
}

}  // extern "C"
