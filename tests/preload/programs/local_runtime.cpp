// local_runtime PLUGIN: opens a plugin that brings a CUDA runtime of its own, so that nobody else sees it.

#include <dlfcn.h>

#include <cstdio>

int main(int argc, char** argv) {
  void* const library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (library == nullptr) {
    std::printf("%s\n", dlerror());
    return 64;
  }
  return reinterpret_cast<int (*)()>(dlsym(library, "AllocateThroughMyRuntime"))();
}
