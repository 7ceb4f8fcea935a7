#include "analyzer/timeline/instants.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "analyzer/trace/event_stream.h"

namespace vramtrace::timeline {
namespace {

using model::Phase;
using trace::Event;

struct NamedPhases {
  std::string_view name;
  std::vector<Phase> phases;
};

const std::vector<NamedPhases>& PhaseNames() {
  static const std::vector<NamedPhases> names = {
      {"load", {Phase::kLoad}},
      {"forward", {Phase::kForward}},
      {"backward", {Phase::kBackward, Phase::kRecompute}},
      {"recompute", {Phase::kRecompute}},
      {"optimizer", {Phase::kOptimizer, Phase::kZeroGrad, Phase::kClip}},
      {"evaluate", {Phase::kEvaluate}},
      {"save", {Phase::kSave}},
      {"script", {Phase::kScript}},
  };
  return names;
}

bool ParsePhase(std::string_view text, InstantQuery* query) {
  for (const NamedPhases& named : PhaseNames()) {
    if (named.name != text) continue;
    query->phases = named.phases;
    return true;
  }
  return false;
}

std::optional<uint64_t> ParseNumber(std::string_view text) {
  constexpr size_t kMostDigits = 19;
  if (text.empty() || text.size() > kMostDigits) return std::nullopt;
  uint64_t number = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return std::nullopt;
    number = number * 10 + static_cast<uint64_t>(digit - '0');
  }
  return number;
}

// "12.5s", "340ms" in nanoseconds.
std::optional<uint64_t> ParseTime(std::string_view text) {
  double unit = 1e9;
  if (text.ends_with("ms")) {
    unit = 1e6;
    text.remove_suffix(2);
  } else if (text.ends_with("s")) {
    text.remove_suffix(1);
  } else {
    return std::nullopt;
  }
  if (text.empty() || text.find_first_not_of("0123456789.") != std::string_view::npos) return std::nullopt;
  const std::string digits(text);
  char* end = nullptr;
  const double value = std::strtod(digits.c_str(), &end);
  constexpr double kLongest = 1e18;
  if (*end != '\0' || !std::isfinite(value) || value * unit > kLongest) return std::nullopt;
  return static_cast<uint64_t>(value * unit);
}

bool ParsePlace(std::string_view text, InstantQuery* query) {
  query->kind = InstantQuery::Kind::kPlace;
  constexpr std::string_view kStep = "step:";
  if (!text.starts_with(kStep)) return ParsePhase(text, query);
  text.remove_prefix(kStep.size());
  const size_t comma = text.find(',');
  query->step = ParseNumber(text.substr(0, comma));
  if (!query->step) return false;
  return comma == std::string_view::npos || ParsePhase(text.substr(comma + 1), query);
}

bool Matches(const InstantQuery& query, const Instant& instant) {
  if (query.step && instant.step != *query.step) return false;
  return query.phases.empty() ||
         std::find(query.phases.begin(), query.phases.end(), instant.phase) != query.phases.end();
}

}  // namespace

std::string_view InstantForms() {
  return "peak, oom, end, step:3, step:3,backward, backward, 12.5s, 340ms or event:4711; phases are load, "
         "forward, backward, recompute, optimizer, evaluate, save, script";
}

std::optional<InstantQuery> ParseInstant(std::string_view text) {
  using Kind = InstantQuery::Kind;
  InstantQuery query;
  query.text = text;
  if (text == "peak") return query;
  for (const auto& [name, kind] : {std::pair{"oom", Kind::kOom}, std::pair{"end", Kind::kEnd}}) {
    if (text != name) continue;
    query.kind = kind;
    return query;
  }
  constexpr std::string_view kEvent = "event:";
  const bool event = text.starts_with(kEvent);
  if (const auto number = event ? ParseNumber(text.substr(kEvent.size())) : ParseTime(text)) {
    query.kind = event ? Kind::kEvent : Kind::kTime;
    query.number = *number;
    return query;
  }
  if (!ParsePlace(text, &query)) return std::nullopt;
  return query;
}

std::map<uint32_t, Instant> FindInstant(const std::shared_ptr<trace::TraceFile>& file,
                                        const std::shared_ptr<const model::Tables>& tables,
                                        const std::shared_ptr<const model::StackTable>& stacks,
                                        const InstantQuery& query, uint64_t first_time_ns) {
  using Kind = InstantQuery::Kind;
  std::map<uint32_t, Instant> found;
  std::map<uint32_t, uint64_t> most;
  Replay replay(tables, stacks);
  trace::EventStream stream(file);
  while (const Event* event = stream.Next()) {
    const Applied applied = replay.Apply(*event);
    if (applied.device == nullptr) continue;
    const Instant& instant = applied.instant;
    bool wanted = query.kind == Kind::kEnd;
    if (query.kind == Kind::kEvent) wanted = instant.sequence <= query.number;
    if (query.kind == Kind::kTime) {
      wanted = instant.time_ns <= first_time_ns || instant.time_ns - first_time_ns <= query.number;
    }
    if (query.kind == Kind::kPlace) {
      const uint64_t allocated = applied.device->memory.allocated();
      wanted = Matches(query, instant) && allocated > most[applied.device_index];
      if (wanted) most[applied.device_index] = allocated;
    }
    if (wanted) found[applied.device_index] = instant;
  }
  return found;
}

Traffic TrafficBetween(const std::shared_ptr<trace::TraceFile>& file,
                       const std::shared_ptr<const model::Tables>& tables,
                       const std::shared_ptr<const model::StackTable>& stacks, uint32_t device,
                       uint64_t after, uint64_t until) {
  Traffic traffic;
  Replay replay(tables, stacks);
  trace::EventStream stream(file);
  while (const Event* event = stream.Next()) {
    if (event->has_sequence && event->sequence > until) break;
    const Applied applied = replay.Apply(*event);
    if (applied.device == nullptr || applied.device_index != device || event->sequence <= after) continue;
    if (applied.allocated != nullptr) {
      ++traffic.allocated_blocks;
      traffic.allocated_bytes += applied.allocated->TensorBytes();
      ++traffic.kept_blocks;
      traffic.kept_bytes += applied.allocated->TensorBytes();
    }
    if (!applied.freed) continue;
    ++traffic.freed_blocks;
    traffic.freed_bytes += applied.freed->TensorBytes();
    if (applied.freed->sequence <= after) continue;
    --traffic.kept_blocks;
    traffic.kept_bytes -= applied.freed->TensorBytes();
  }
  return traffic;
}

}  // namespace vramtrace::timeline
