// plugin_host PLUGIN HOW SYMBOL: opens hook_cases as a plugin, HOW is local or deepbind, and runs a case
// there. Nothing of CUDA is in this program or in its global scope.

#include <dlfcn.h>

#include <cstdio>
#include <cstring>

int main(int argc, char** argv) {
  if (argc != 4) return 64;
  const int deep = std::strcmp(argv[2], "deepbind") == 0 ? RTLD_DEEPBIND : 0;
  void* const plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | deep);
  if (plugin == nullptr) {
    std::printf("%s\n", dlerror());
    return 64;
  }
  const auto start = reinterpret_cast<int (*)(unsigned int)>(dlsym(plugin, "StartCuda"));
  if (start == nullptr || start(0) != 0) return 66;
  const auto run = reinterpret_cast<int (*)(const char*, const char*)>(dlsym(plugin, "RunHookCase"));
  return run(argv[3], "direct");
}
