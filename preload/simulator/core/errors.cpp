#include "preload/simulator/core/errors.h"

#include <cuda.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "preload/simulator/core/device.h"

namespace vramtrace::simulator {
namespace {

struct Text {
  int code;
  const char* text;
};

// As CUDA prints them (seen in public reports); sorted by code.
constexpr Text kTexts[] = {
    {0, "no error"},
    {1, "invalid argument"},
    {2, "out of memory"},
    {3, "initialization error"},
    {4, "driver shutting down"},
    {9, "invalid configuration argument"},
    {12, "invalid pitch argument"},
    {13, "invalid device symbol"},
    {17, "invalid device pointer"},
    {18, "invalid texture reference"},
    {20, "invalid channel descriptor"},
    {21, "invalid copy direction for memcpy"},
    {34, "CUDA driver is a stub library"},
    {35, "CUDA driver version is insufficient for CUDA runtime version"},
    {46, "CUDA-capable device(s) is/are busy or unavailable"},
    {52, "__global__ function call is not configured"},
    {98, "invalid device function"},
    {100, "no CUDA-capable device is detected"},
    {101, "invalid device ordinal"},
    {200, "device kernel image is invalid"},
    {201, "invalid device context"},
    {209, "no kernel image is available for execution on the device"},
    {214, "uncorrectable ECC error encountered"},
    {217, "peer access is not supported between these two devices"},
    {218, "a PTX JIT compilation failed"},
    {221, "PTX JIT compiler library not found"},
    {222, "the provided PTX was compiled with an unsupported toolchain."},
    {301, "file not found"},
    {302, "shared object symbol not found"},
    {303, "shared object initialization failed"},
    {304, "OS call failed or operation not supported on this OS"},
    {400, "invalid resource handle"},
    {401, "the operation cannot be performed in the present state"},
    {500, "named symbol not found"},
    {600, "device not ready"},
    {700, "an illegal memory access was encountered"},
    {701, "too many resources requested for launch"},
    {702, "the launch timed out and was terminated"},
    {704, "peer access is already enabled"},
    {705, "peer access has not been enabled"},
    {708, "cannot set while device is active in this process"},
    {709, "context is destroyed"},
    {710, "device-side assert triggered"},
    {712, "part or all of the requested memory range is already mapped"},
    {713, "pointer does not correspond to a registered memory region"},
    {714, "hardware stack error"},
    {715, "an illegal instruction was encountered"},
    {716, "misaligned address"},
    {718, "invalid program counter"},
    {719, "unspecified launch failure"},
    {720, "too many blocks in cooperative launch"},
    {800, "operation not permitted"},
    {801, "operation not supported"},
    {802, "system not yet initialized"},
    {900, "operation not permitted when stream is capturing"},
    {901, "operation failed due to a previous error during capture"},
    {904, "dependency created on uncaptured work in another stream"},
    {907, "operation not permitted on an event last recorded in a capturing stream"},
    {999, "unknown error"},
};

// cudaErrorInvalidSource -> invalid source; CUDA_ERROR_INVALID_SOURCE -> invalid source
std::string InWords(std::string_view name) {
  for (std::string_view prefix : {"cudaError", "CUDA_ERROR_"}) {
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  }
  std::string words;
  for (size_t i = 0; i < name.size(); ++i) {
    bool boundary = i > 0 && std::isupper(static_cast<unsigned char>(name[i])) != 0 &&
                    std::islower(static_cast<unsigned char>(name[i - 1])) != 0;
    if (boundary || name[i] == '_') words += ' ';
    if (name[i] != '_') words += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
  }
  return words;
}

}  // namespace

const char* ErrorText(int code, const char* name) {
  const auto* row = std::lower_bound(std::begin(kTexts), std::end(kTexts), code,
                                     [](const Text& text, int wanted) { return text.code < wanted; });
  if (row != std::end(kTexts) && row->code == code) return row->text;
  static std::mutex mutex;
  static auto* texts = new std::map<std::string, std::string>;
  std::lock_guard lock(mutex);
  return texts->try_emplace(name, InWords(name)).first->second.c_str();
}

int ErrorCode(Status status) {
  switch (status) {
    case Status::kOk:
      return CUDA_SUCCESS;
    case Status::kInvalidValue:
      return CUDA_ERROR_INVALID_VALUE;
    case Status::kOutOfMemory:
      return CUDA_ERROR_OUT_OF_MEMORY;
    case Status::kInvalidDevice:
      return DeviceCount() == 0 ? CUDA_ERROR_NO_DEVICE : CUDA_ERROR_INVALID_DEVICE;
    case Status::kInvalidHandle:
      return CUDA_ERROR_INVALID_HANDLE;
    case Status::kNotFound:
      return CUDA_ERROR_NOT_FOUND;
    case Status::kNotSupported:
      return CUDA_ERROR_NOT_SUPPORTED;
    case Status::kForked:
      return CUDA_ERROR_NOT_INITIALIZED;
    case Status::kInjected:
      return CUDA_ERROR_LAUNCH_FAILED;
  }
  return CUDA_ERROR_UNKNOWN;
}

}  // namespace vramtrace::simulator
