#include "preload/simulator/core/values.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>

#include "preload/simulator/core/contents.h"
#include "preload/simulator/core/options.h"
#include "preload/simulator/core/report.h"
#include "preload/simulator/core/state.h"

namespace vramtrace::simulator {
namespace {

struct Count {
  uint64_t value = 0;
  bool known = false;
};
constexpr size_t kMostCounts = 16;
thread_local std::deque<Count> expected_counts;
thread_local bool expected_flag = false;

constexpr double kUsualRatio = 0.5;

}  // namespace

Knowledge KnowledgeOf(uint64_t address, uint64_t bytes) {
  State& state = TheState();
  if (Forked()) return Knowledge::kNotLive;
  std::lock_guard lock(state.mutex);
  if (!IsLive(state, address, bytes)) return Knowledge::kNotLive;
  return IsKnown(state, address, bytes) ? Knowledge::kKnown : Knowledge::kInvented;
}

bool OpenForHost(uint64_t address, uint64_t bytes) {
  State& state = TheState();
  if (Forked()) return false;
  std::lock_guard lock(state.mutex);
  return IsLive(state, address, bytes) && state.addresses.Commit(address, bytes);
}

void MarkWritten(uint64_t address, uint64_t bytes, bool known) {
  State& state = TheState();
  if (Forked()) return;
  std::lock_guard lock(state.mutex);
  if (!IsLive(state, address, bytes)) return;
  state.stored.Mark(address, bytes);
  MarkInvented(state, address, bytes, !known);
}

void ExpectCount(uint64_t value, bool known) {
  if (expected_counts.size() == kMostCounts) expected_counts.pop_front();
  expected_counts.push_back({value, known});
}

void ForgetCounts() { expected_counts.clear(); }

void ExpectFlag(bool value) { expected_flag = value; }

uint64_t UnknownCount(uint64_t most) {
  const std::string& text = CurrentOptions().counts;
  if (text == "largest") return most;
  char* end = nullptr;
  double ratio = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != '\0' || !(ratio >= 0.0 && ratio <= 1.0)) ratio = kUsualRatio;
  return static_cast<uint64_t>(static_cast<double>(most) * ratio);
}

bool TakeCount(void* destination, uint64_t bytes, bool stored, bool* known) {
  if (expected_counts.empty() && bytes == 1 && expected_flag && !stored) {
    *static_cast<unsigned char*>(destination) = 1;
    *known = false;
    expected_flag = false;
    return true;
  }
  if (expected_counts.empty() || (bytes != 1 && bytes != 4 && bytes != 8)) return false;
  const Count count = expected_counts.front();
  expected_counts.pop_front();
  std::memcpy(destination, &count.value, bytes);
  *known = count.known;
  return true;
}

}  // namespace vramtrace::simulator

using namespace vramtrace::simulator;

int vramtrace_sim_knowledge(uint64_t address, uint64_t bytes) {
  return static_cast<int>(KnowledgeOf(address, bytes));
}

int vramtrace_sim_open(uint64_t address, uint64_t bytes) { return OpenForHost(address, bytes) ? 1 : 0; }

void vramtrace_sim_written(uint64_t address, uint64_t bytes, int known) {
  MarkWritten(address, bytes, known != 0);
}

void vramtrace_sim_expect_count(uint64_t value, int known) { ExpectCount(value, known != 0); }

void vramtrace_sim_forget_counts() { ForgetCounts(); }

void vramtrace_sim_invented(const char* where, const char* what, const char* effect) {
  report::Invented(where, what, effect);
}

void vramtrace_sim_shadow_cost(uint64_t seen, uint64_t computed, uint64_t nanoseconds) {
  report::Add(report::Count::kShadowSeen, seen);
  report::Add(report::Count::kShadowComputed, computed);
  report::Add(report::Count::kShadowNanoseconds, nanoseconds);
}
