// cuFile reads and writes answer a negative error number instead of a status.

#include <sys/types.h>

#include "preload/simulator/core/log.h"

namespace {

constexpr char kLibrary[] = "libcufile.so.0";
constexpr ssize_t kPlatformNotSupported = 5007;  // CU_FILE_PLATFORM_NOT_SUPPORTED of cufile.h

}  // namespace

extern "C" {

ssize_t cuFileRead(void*, void*, size_t, off_t, off_t) {
  vramtrace_sim_unsupported(kLibrary, "cuFileRead");
  return -kPlatformNotSupported;
}

ssize_t cuFileWrite(void*, const void*, size_t, off_t, off_t) {
  vramtrace_sim_unsupported(kLibrary, "cuFileWrite");
  return -kPlatformNotSupported;
}

}  // extern "C"
