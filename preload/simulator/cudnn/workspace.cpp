#include "preload/simulator/cudnn/workspace.h"

#include <cerrno>
#include <cstdlib>

#include "preload/simulator/core/log.h"

namespace vramtrace::simulator::cudnn {
namespace {

int64_t ReadSetting() {
  const char* text = std::getenv("VRAMTRACE_SIM_CUDNN_WORKSPACE");
  if (text == nullptr || *text == '\0') return 0;
  const int saved = errno;
  errno = 0;
  char* end = nullptr;
  const long long bytes = std::strtoll(text, &end, 10);
  const bool good = errno == 0 && *end == '\0' && bytes >= 0;
  errno = saved;
  if (good) return bytes;
  Warn("VRAMTRACE_SIM_CUDNN_WORKSPACE=%s is not a number of bytes; taken as 0", text);
  return 0;
}

}  // namespace

int64_t PlanWorkspaceBytes() {
  static const int64_t bytes = ReadSetting();
  return bytes;
}

}  // namespace vramtrace::simulator::cudnn
