// Start of libvramtrace.so. The constructor opens nothing and starts nothing: outside of Python it makes one
// look-up, so that /bin/true under the preload costs no more than its mapping.

#include <dlfcn.h>

#include <cstdlib>

#include "preload/recorder/hooks/import_patch.h"
#include "preload/recorder/hooks/label_functions.h"

namespace {

// The driver opens the library that this variable names inside cuInit (interception facts 2.8): a second way
// in, for what the first does not reach. Another tool that is there already stays there.
void AskForInjection() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&AskForInjection), &info) == 0 || info.dli_fname == nullptr) return;
  if (info.dli_fname[0] == '/') setenv("CUDA_INJECTION64_PATH", info.dli_fname, /*overwrite=*/0);
}

__attribute__((constructor)) void Start() {
  AskForInjection();
  vramtrace::hooks::StartPython();
}

}  // namespace

// Called by the driver, on the thread that called cuInit. 1: all is well.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  vramtrace::hooks::PatchImports();
  return 1;
}
