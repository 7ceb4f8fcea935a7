#include "preload/simulator/core/faults.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "preload/simulator/core/log.h"
#include "preload/simulator/core/options.h"

namespace vramtrace::simulator {
namespace {

constexpr int kKinds = static_cast<int>(CallKind::kCount);

// One row a kind, in the order of CallKind.
constexpr const char* kCallKinds[kKinds] = {"allocate", "host", "copy",   "launch",
                                            "physical", "map",  "context"};

struct Plan {
  uint64_t first = 0;  // 0: never fails
  bool later_too = false;
};

struct Plans {
  Plan rows[kKinds];
};

bool ParseEntry(const std::string& entry, Plans& plans) {
  size_t colon = entry.find(':');
  if (colon == std::string::npos) return false;
  char* end = nullptr;
  uint64_t number = std::strtoull(entry.c_str() + colon + 1, &end, 10);
  bool later_too = *end == '+';
  if (later_too) ++end;
  if (*end != '\0' || number == 0) return false;
  for (int kind = 0; kind < kKinds; ++kind) {
    if (entry.compare(0, colon, kCallKinds[kind]) != 0) continue;
    plans.rows[kind] = {number, later_too};
    return true;
  }
  return false;
}

Plans ReadPlans() {
  Plans plans;
  std::string rest = CurrentOptions().fail;
  while (!rest.empty()) {
    size_t comma = rest.find(',');
    std::string entry = rest.substr(0, comma);
    if (!ParseEntry(entry, plans)) {
      Warn(
          "VRAMTRACE_SIM_FAIL: '%s' is not KIND:N with a kind of allocate, host, copy, launch, physical, "
          "map, context",
          entry.c_str());
    }
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
  }
  return plans;
}

std::atomic<uint64_t> calls[kKinds];

}  // namespace

bool ShouldFail(CallKind kind) {
  static const Plans plans = ReadPlans();
  auto index = static_cast<size_t>(kind);
  const Plan& plan = plans.rows[index];
  if (plan.first == 0) return false;
  uint64_t number = calls[index].fetch_add(1, std::memory_order_relaxed) + 1;
  return number == plan.first || (plan.later_too && number > plan.first);
}

}  // namespace vramtrace::simulator
