#include "preload/recorder/stacks/internals.h"

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "preload/recorder/record/recorder.h"

namespace vramtrace::stacks {
namespace {

constexpr const char* kNames[] = {
#define VRAMTRACE_INTERNAL(identifier, name) name,
#include "preload/recorder/stacks/internals.def"
#undef VRAMTRACE_INTERNAL
};
constexpr size_t kRows = static_cast<size_t>(Internal::kCount);
static_assert(sizeof kNames / sizeof kNames[0] == kRows);

enum class State : int { kUnset, kOn, kOff, kWriting };

struct Row {
  std::atomic<State> state{State::kUnset};
  char reason[192] = "";
};
Row g_rows[kRows];

Row& RowOf(Internal row) { return g_rows[static_cast<size_t>(row)]; }

// Is `name` an element of the comma separated list in `variable`?
bool Lists(const char* variable, const char* name) {
  const char* list = std::getenv(variable);
  const size_t length = std::strlen(name);
  while (list != nullptr && *list != '\0') {
    const size_t element = std::strcspn(list, ",");
    if (element == length && std::strncmp(list, name, length) == 0) return true;
    list += element + (list[element] == ',' ? 1 : 0);
  }
  return false;
}

void Write(Internal row) {
  const State state = RowOf(row).state.load(std::memory_order_acquire);
  if (state == State::kOn || state == State::kOff) {
    record::FeatureSet(NameOf(row), state == State::kOn, RowOf(row).reason);
  }
}

}  // namespace

const char* NameOf(Internal row) noexcept { return kNames[static_cast<size_t>(row)]; }

bool SwitchedOff(Internal row) noexcept { return Lists("VRAMTRACE_OFF", NameOf(row)); }

bool MadeToFail(Internal row) noexcept { return Lists("VRAMTRACE_BREAK", NameOf(row)); }

void SetInternal(Internal row, bool on, const char* reason) noexcept {
  Row& entry = RowOf(row);
  if (entry.state.exchange(State::kWriting, std::memory_order_acq_rel) == State::kWriting) return;
  std::snprintf(entry.reason, sizeof entry.reason, "%s", reason);
  entry.state.store(on ? State::kOn : State::kOff, std::memory_order_release);
  if (record::Recording()) Write(row);
}

void LoseInternal(Internal row, const char* reason) noexcept {
  if (IsOn(row)) SetInternal(row, false, reason);
}

bool IsOn(Internal row) noexcept { return RowOf(row).state.load(std::memory_order_relaxed) == State::kOn; }

void WriteInternals() noexcept {
  for (size_t i = 0; i < kRows; ++i) Write(static_cast<Internal>(i));
}

}  // namespace vramtrace::stacks
