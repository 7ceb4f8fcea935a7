#include "preload/recorder/hooks/trace_session.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "preload/recorder/stacks/internals.h"

namespace vramtrace::hooks {
namespace {

std::atomic<bool> g_announced{false};
char g_python_version[32];
char g_torch_version[64];

uint64_t ReadNativeBytes() {
  const char* text = std::getenv("VRAMTRACE_NATIVE_BYTES");
  if (text == nullptr || *text == '\0') return kDefaultNativeBytes;
  return std::strtoull(text, nullptr, 10);
}

void WriteProcessFacts() {
  record::ProcessFacts facts;
  facts.python_version = g_python_version;
  facts.torch_version = g_torch_version;
  facts.simulated = dlsym(RTLD_DEFAULT, "vramtrace_simulator_present") != nullptr ? 1 : 0;
  record::ProcessLearned(facts);
}

}  // namespace

bool OpenTrace() noexcept {
  if (record::Recording()) return true;
  stacks::PrepareNativeFrames();
  if (!record::EnsureOpen()) return false;
  if (!g_announced.exchange(true, std::memory_order_acq_rel)) {
    WriteProcessFacts();
    stacks::WriteInternals();
  }
  return true;
}

void LearnPython(const char* version) noexcept {
  std::snprintf(g_python_version, sizeof g_python_version, "%s", version);
}

void LearnTorch(const char* version) noexcept {
  std::snprintf(g_torch_version, sizeof g_torch_version, "%s", version);
  if (!record::Recording()) return;
  record::ProcessFacts facts;
  facts.torch_version = g_torch_version;
  record::ProcessLearned(facts);
}

bool WantsNativeFrames(uint64_t block_bytes) noexcept {
  static const uint64_t threshold = ReadNativeBytes();
  return block_bytes >= threshold;
}

}  // namespace vramtrace::hooks
