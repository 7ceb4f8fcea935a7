#include "analyzer/forecast/replay.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyzer/allocator/caching_allocator.h"

namespace vramtrace::forecast {
namespace {

using allocator::Allocation;
using allocator::BlockId;
using allocator::CachingAllocator;
using allocator::CardMemory;

// Larger than any device and any sum of segments: a card that never refuses.
constexpr Bytes kNoLimit = Bytes{1} << 50;

size_t Raw(RequestId id) { return static_cast<size_t>(id); }

class Run {
 public:
  Run(const Stream& stream, const ReplayOptions& options)
      : stream_(stream),
        card_({.total = options.total == 0 ? kNoLimit : options.total, .used_elsewhere = options.elsewhere}),
        allocator_(options.settings, *options.rules, card_, finished_),
        blocks_(stream.requests.size(), BlockId::kNone),
        sizes_(stream.requests.size()) {
    outcome_.elsewhere = options.elsewhere;
  }

  Outcome Execute() {
    for (uint32_t i = 0; i < stream_.events.size(); ++i) {
      const Event& event = stream_.events[i];
      if (event.kind == EventKind::kFree) Free(event.request);
      if (event.kind == EventKind::kAllocate && !Allocate(event, i)) break;
    }
    outcome_.retries = allocator_.statistics().num_alloc_retries;
    ExplainPeak();
    return std::move(outcome_);
  }

 private:
  void Free(RequestId id) {
    BlockId& block = blocks_[Raw(id)];
    if (block == BlockId::kNone) return;
    allocator_.Free(block);
    block = BlockId::kNone;
  }

  Peak At(Bytes bytes, uint32_t place) const {
    const Event& event = stream_.events[place];
    const Request& request = stream_[event.request];
    return {bytes, place, request.step, event.phase, request.site};
  }

  // False where the card refused.
  bool Allocate(const Event& event, uint32_t place) {
    const Request& request = stream_[event.request];
    const allocator::AllocationResult result = allocator_.Allocate(request.bytes);
    if (const auto* refused = std::get_if<allocator::OutOfMemory>(&result)) {
      outcome_.failure = *refused;
      outcome_.failed_at = At(request.bytes, place);
      return false;
    }
    const auto& allocation = std::get<Allocation>(result);
    blocks_[Raw(event.request)] = allocation.block;
    sizes_[Raw(event.request)] = allocation.size;
    const allocator::PoolStatistics& all = allocator_.statistics().all;
    const auto allocated = static_cast<Bytes>(all.allocated_bytes.current);
    const auto reserved = static_cast<Bytes>(all.reserved_bytes.current);
    if (allocated > outcome_.allocated.bytes) outcome_.allocated = At(allocated, place);
    if (reserved > outcome_.reserved.bytes) outcome_.reserved = At(reserved, place);
    Bytes& phase = outcome_.phases[static_cast<size_t>(event.phase)];
    phase = std::max(phase, allocated);
    if (outcome_.step_peaks.size() <= request.step) outcome_.step_peaks.resize(request.step + 1);
    Bytes& step = outcome_.step_peaks[request.step];
    step = std::max(step, allocated);
    return true;
  }

  // Block bytes of what is alive at the peak.
  void ExplainPeak() {
    if (outcome_.allocated.bytes == 0) return;
    std::vector<bool> alive(stream_.requests.size());
    for (uint32_t i = 0; i <= outcome_.allocated.event; ++i) {
      const Event& event = stream_.events[i];
      if (event.kind != EventKind::kStepEnd) alive[Raw(event.request)] = event.kind == EventKind::kAllocate;
    }
    std::vector<RequestId> live;
    for (uint32_t i = 0; i < alive.size(); ++i) {
      if (!alive[i]) continue;
      live.push_back(RequestId{i});
      outcome_.classes[static_cast<size_t>(stream_.requests[i].memory_class)] += sizes_[i];
    }
    constexpr size_t kLargest = 8;
    const size_t count = std::min(kLargest, live.size());
    std::partial_sort(live.begin(), live.begin() + static_cast<std::ptrdiff_t>(count), live.end(),
                      [this](RequestId a, RequestId b) {
                        return sizes_[Raw(a)] != sizes_[Raw(b)] ? sizes_[Raw(a)] > sizes_[Raw(b)] : a < b;
                      });
    live.resize(count);
    outcome_.largest = std::move(live);
  }

  const Stream& stream_;
  CardMemory card_;
  allocator::FinishedStreams finished_;
  CachingAllocator allocator_;
  std::vector<BlockId> blocks_;
  std::vector<Bytes> sizes_;
  Outcome outcome_;
};

}  // namespace

trace::Result<ReplayOptions> OptionsOf(const RunFacts& facts) {
  ReplayOptions options;
  options.elsewhere = facts.elsewhere;
  options.rules = allocator::FindVersion(facts.pytorch);
  if (options.rules == nullptr) {
    return trace::Error{
        facts.trace, std::nullopt,
        fmt::format("recorded with PyTorch {}.{}; the allocator's rules are known from 2.0 on.",
                    facts.pytorch.major, facts.pytorch.minor)};
  }
  const auto parsed = allocator::ParseSettings(facts.allocator_settings, *options.rules);
  if (const auto* wrong = std::get_if<allocator::SettingsError>(&parsed)) {
    return trace::Error{facts.trace, std::nullopt,
                        fmt::format("PYTORCH_CUDA_ALLOC_CONF of the run: {} is not understood; expected {}.",
                                    wrong->option, wrong->expected)};
  }
  options.settings = std::get<allocator::Settings>(parsed);
  if (!options.settings.native_backend) {
    return trace::Error{facts.trace, std::nullopt,
                        "the run used the cudaMallocAsync backend, whose rules are the driver's; a forecast "
                        "needs a run with PyTorch's own allocator (leave backend: out)."};
  }
  return options;
}

Outcome Replay(const Stream& stream, const ReplayOptions& options) { return Run(stream, options).Execute(); }

}  // namespace vramtrace::forecast
