// Code loaded at run time (cudaLibraryLoadData). It is not read: a kernel is a name, found whatever it is
// called.
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "preload/simulator/core/kernels.h"
#include "preload/simulator/cudart/runtime.h"

using namespace vramtrace::simulator;
using runtime::Fail;
using runtime::Result;

namespace {

struct Library {
  std::map<std::string, std::unique_ptr<char>> kernels;  // the char's address is the handle
};

struct Libraries {
  std::mutex mutex;
  std::map<void*, std::unique_ptr<Library>> all;
};

Libraries& TheLibraries() {
  static auto* libraries = new Libraries;
  return *libraries;
}

cudaError_t Load(cudaLibrary_t* handle) {
  if (Status status = EnsureContext(); status != Status::kOk) return Result(status);
  Libraries& libraries = TheLibraries();
  std::lock_guard lock(libraries.mutex);
  auto library = std::make_unique<Library>();
  *handle = reinterpret_cast<cudaLibrary_t>(library.get());
  libraries.all[library.get()] = std::move(library);
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* /*code*/, cudaJitOption* /*jit_options*/,
                                void** /*jit_values*/, unsigned /*jit_count*/, cudaLibraryOption* /*options*/,
                                void** /*values*/, unsigned /*count*/) {
  return Load(library);
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* path, cudaJitOption* /*jit_options*/,
                                    void** /*jit_values*/, unsigned /*jit_count*/,
                                    cudaLibraryOption* /*options*/, void** /*values*/, unsigned /*count*/) {
  FILE* file = std::fopen(path, "re");
  if (file == nullptr) return Fail(cudaErrorFileNotFound);
  std::fclose(file);
  return Load(library);
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  Libraries& libraries = TheLibraries();
  std::lock_guard lock(libraries.mutex);
  return libraries.all.erase(library) == 0 ? Result(Status::kInvalidHandle) : cudaSuccess;
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  Libraries& libraries = TheLibraries();
  std::lock_guard lock(libraries.mutex);
  auto found = libraries.all.find(library);
  if (found == libraries.all.end()) return Result(Status::kInvalidHandle);
  auto [entry, added] = found->second->kernels.try_emplace(name);
  if (added) {
    entry->second = std::make_unique<char>();
    RegisterLoadedKernel(entry->second.get(), name);
  }
  *kernel = reinterpret_cast<cudaKernel_t>(entry->second.get());
  return cudaSuccess;
}

}  // extern "C"
