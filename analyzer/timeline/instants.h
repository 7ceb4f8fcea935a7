#pragma once
// An instant by what a person calls it: "step:3,backward", "12.5s", "event:4711".

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/timeline/replay.h"
#include "analyzer/trace/trace_file.h"

namespace vramtrace::timeline {

struct InstantQuery {
  enum class Kind : uint8_t {
    kPeak,   // of allocated bytes
    kOom,    // the refusal that ended the run, or the newest
    kEnd,    // the last event
    kPlace,  // where a step, a phase, or a phase of a step holds most
    kTime,   // the newest event by then, since the trace's first
    kEvent,  // likewise, by sequence number
  };
  Kind kind = Kind::kPeak;
  std::optional<uint64_t> step;
  std::vector<model::Phase> phases;  // empty: any
  uint64_t number = 0;               // nanoseconds, or the sequence number
  std::string text;                  // as it was written
};

// What ParseInstant takes, for a usage message.
[[nodiscard]] std::string_view InstantForms();

// nullopt: not one of the forms.
[[nodiscard]] std::optional<InstantQuery> ParseInstant(std::string_view text);

// The instant on each device that has one. Peaks and refusals are not looked for here: a Scan has them.
[[nodiscard]] std::map<uint32_t, Instant> FindInstant(const std::shared_ptr<trace::TraceFile>& file,
                                                      const std::shared_ptr<const model::Tables>& tables,
                                                      const std::shared_ptr<const model::StackTable>& stacks,
                                                      const InstantQuery& query, uint64_t first_time_ns);

// What was allocated and freed on a device after one event, up to and with another.
struct Traffic {
  uint64_t allocated_blocks = 0;
  uint64_t allocated_bytes = 0;
  uint64_t freed_blocks = 0;
  uint64_t freed_bytes = 0;
  uint64_t kept_blocks = 0;  // of those allocated: alive at the end
  uint64_t kept_bytes = 0;
};
[[nodiscard]] Traffic TrafficBetween(const std::shared_ptr<trace::TraceFile>& file,
                                     const std::shared_ptr<const model::Tables>& tables,
                                     const std::shared_ptr<const model::StackTable>& stacks, uint32_t device,
                                     uint64_t after, uint64_t until);

}  // namespace vramtrace::timeline
