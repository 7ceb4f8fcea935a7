// no_device SYMBOL: calls a hooked function in a process that has no CUDA at all, found as a probing program
// finds it. Exits with what it answered; 101 if the name does not exist.

#include <dlfcn.h>

#include <cstddef>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  void* const function = dlsym(RTLD_DEFAULT, argv[1]);
  if (function == nullptr) return 101;
  // Arguments that no function may touch before it knows that there is a device behind it.
  const auto call = reinterpret_cast<int (*)(void*, void*, void*, void*, void*, void*)>(function);
  return call(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
}
