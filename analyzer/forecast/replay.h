#pragma once
// A stream through the rules of the caching allocator: what its peak is, and whether a card holds it.

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "analyzer/allocator/out_of_memory.h"
#include "analyzer/allocator/settings.h"
#include "analyzer/forecast/stream.h"
#include "analyzer/trace/result.h"

namespace vramtrace::forecast {

// A highest value and where it was reached.
struct Peak {
  Bytes bytes = 0;
  uint32_t event = 0;  // place in Stream::events
  uint32_t step = 0;
  Phase phase = Phase::kScript;
  SiteId site = SiteId::kNone;  // of the request that reached it
};

struct Outcome {
  Peak allocated;  // PyTorch's max_memory_allocated
  Peak reserved;   // max_memory_reserved
  Bytes elsewhere = 0;
  // Block bytes by class at the peak of allocated bytes.
  std::array<Bytes, attribution::kMemoryClassCount> classes{};
  // The largest requests alive then, at most 8, by descending bytes.
  std::vector<RequestId> largest;
  // The highest allocated bytes in each phase of any step: a remedy that lowers one exposes the next.
  std::array<Bytes, 16> phases{};
  std::vector<Bytes> step_peaks;  // allocated, by Request::step
  int64_t retries = 0;            // cache releases before a request went through
  // The request that no card of this size could serve; the replay ended there.
  std::optional<allocator::OutOfMemory> failure;
  Peak failed_at;

  [[nodiscard]] Bytes used() const { return reserved.bytes + elsewhere; }
};

struct ReplayOptions {
  allocator::Settings settings;
  const allocator::VersionRules* rules = nullptr;  // borrowed, never nullptr
  Bytes elsewhere = 0;                             // context, code, other libraries and processes
  Bytes total = 0;                                 // of the card; 0: no limit
};

// The settings and the release of the run itself, on a card without a limit. An error names the option that
// cannot be read or the release that is too old.
[[nodiscard]] trace::Result<ReplayOptions> OptionsOf(const RunFacts& facts);

[[nodiscard]] Outcome Replay(const Stream& stream, const ReplayOptions& options);

}  // namespace vramtrace::forecast
