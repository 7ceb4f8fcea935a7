#include "preload/simulator/others/real_library.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace vramtrace::simulator::others {
namespace {

using Folders = std::vector<std::string>;

// <site-packages>/torch/lib/libtorch_cuda.so has its NVIDIA wheels in <site-packages>/nvidia.
int AddWheelFolders(dl_phdr_info* object, size_t, void* data) {
  const std::string path = object->dlpi_name != nullptr ? object->dlpi_name : "";
  const size_t torch = path.rfind("/torch/lib/libtorch_cuda.so");
  if (torch == std::string::npos) return 0;
  const std::string packages = path.substr(0, torch) + "/nvidia/";
  for (const char* folder : {"cu13/lib", "cuda_nvrtc/lib"})
    static_cast<Folders*>(data)->push_back(packages + folder);
  return 0;
}

void AddVariable(Folders& folders, const char* variable, const char* suffix) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return;
  const std::string list = text;
  for (size_t begin = 0; begin <= list.size();) {
    size_t end = list.find(':', begin);
    if (end == std::string::npos) end = list.size();
    if (end > begin) folders.push_back(list.substr(begin, end - begin) + suffix);
    begin = end + 1;
  }
}

}  // namespace

void* OpenReal(const char* soname) {
  Folders folders;
  dl_iterate_phdr(AddWheelFolders, &folders);
  AddVariable(folders, "CUDA_HOME", "/lib64");
  AddVariable(folders, "LD_LIBRARY_PATH", "");
  folders.emplace_back("/usr/local/cuda/lib64");
  for (const std::string& folder : folders) {
    const std::string path = folder + "/" + soname;
    if (access(path.c_str(), R_OK) != 0) continue;
    if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

}  // namespace vramtrace::simulator::others
