#include "analyzer/attribution/identity.h"

#include <algorithm>
#include <map>

#include "analyzer/attribution/segment_map.h"

namespace vramtrace::attribution {
namespace {

using timeline::Segment;
using timeline::Snapshot;
using trace::MemoryKind;

int64_t Signed(uint64_t bytes) { return static_cast<int64_t>(bytes); }

class IdentityBuilder {
 public:
  IdentityBuilder(const model::Tables& tables, const Snapshot& snapshot)
      : tables_(tables), snapshot_(snapshot) {}

  void AddClasses(const std::array<ClassTotal, kMemoryClassCount>& classes, uint64_t rounding) {
    for (size_t i = 0; i < kMemoryClassCount; ++i) {
      const auto memory_class = static_cast<MemoryClass>(i);
      if (classes[i].blocks == 0) continue;
      Add(KeyOf(memory_class), WordsOf(memory_class), Signed(classes[i].tensor_bytes), "recorded",
          MeaningOf(memory_class));
    }
    Add("rounding", "allocator rounding", Signed(rounding), "recorded", "block sizes less requested sizes");
  }

  void AddCache() {
    const int64_t unrecorded = snapshot_.unrecorded_allocated;
    if (unrecorded != 0) {
      Add("unrecorded_blocks", "blocks the trace does not hold", unrecorded, "counter",
          "PyTorch's own counter of allocated bytes less the blocks that were recorded");
    }
    if (!SegmentsKnown()) return;
    // Where blocks come without a driver event around them, the allocator's memory is known from its counter
    // only.
    const bool recorded = snapshot_.unrecorded_reserved == 0;
    const int64_t reserved = Signed(snapshot_.reserved) + snapshot_.unrecorded_reserved;
    Add("cached_free", "cached free", reserved - Signed(snapshot_.allocated) - unrecorded,
        recorded ? "recorded" : "counter",
        recorded ? "segments less live blocks" : "PyTorch's own counter of reserved bytes less live blocks");
  }

  // What others took from the driver, a term a library.
  void AddOtherAllocations() {
    std::map<std::string, uint64_t> by_library;
    const auto add = [&](const Segment& segment) {
      if (segment.caching || segment.kind == MemoryKind::kManaged || segment.kind == MemoryKind::kImported ||
          segment.kind == MemoryKind::kGraph)
        return;
      const std::string_view caller = tables_.Text(segment.caller);
      by_library[caller.empty() ? "an unknown library" : std::string(caller)] += segment.bytes;
    };
    for (const auto& [address, segment] : snapshot_.segments) add(segment);
    for (const auto& [handle, segment] : snapshot_.physical) add(segment);
    for (const auto& [library, bytes] : by_library) {
      Add("driver:" + library, "allocations of " + library, Signed(bytes), "recorded",
          "taken from the driver without the caching allocator");
    }
    AddUnmapped();
  }

  // Physical memory of the caching allocator that is not mapped (or mapped twice).
  void AddUnmapped() {
    int64_t unmapped = 0;
    for (const auto& [handle, segment] : snapshot_.physical)
      unmapped += segment.caching ? Signed(segment.bytes) : 0;
    for (const auto& [address, mapping] : snapshot_.mappings)
      unmapped -= mapping.caching ? Signed(mapping.bytes) : 0;
    if (unmapped == 0) return;
    Add("unmapped", "physical memory that is not mapped", unmapped, "recorded", "cuMemCreate less cuMemMap");
  }

  void AddContextAndRest() {
    if (!snapshot_.device_used) return;
    const bool simulated = tables_.Simulated(snapshot_.request.device);
    Add("context", "context and code", Signed(snapshot_.context_bytes.value_or(0)),
        simulated ? "modelled" : "recorded",
        simulated ? "charged by the simulated device"
                  : "the device's answer when the context was new; what other processes held then is in it");
    const int64_t rest = Signed(*snapshot_.device_used) - identity_.sum;
    if (rest == 0) return;
    Add("rest", simulated ? "code loaded later, driver rounding" : "other processes, code loaded later", rest,
        "remainder", "the device's answer less everything above; the driver's own rounding is in it");
  }

  Identity Finish() {
    if (snapshot_.device_used) {
      identity_.device_used = *snapshot_.device_used;
      identity_.device_used_known = true;
      identity_.device_used_basis = snapshot_.used_is_recorded
                                        ? "recorded: total less free, as the device answered"
                                        : "the device's newest answer and the allocations since";
    } else {
      // Blocks whose segments were not seen are all that is known of their memory.
      const int64_t without_segments = SegmentsKnown() ? 0 : identity_.sum - Signed(snapshot_.driver_bytes);
      identity_.device_used = static_cast<uint64_t>(std::max<int64_t>(
          0, Signed(snapshot_.driver_bytes) + snapshot_.unrecorded_reserved + without_segments));
      identity_.device_used_basis =
          "the device was never asked: allocations that were recorded, without context and code";
    }
    return std::move(identity_);
  }

 private:
  [[nodiscard]] bool SegmentsKnown() const {
    return snapshot_.reserved > 0 || snapshot_.unrecorded_reserved != 0 || snapshot_.allocated == 0;
  }

  void Add(std::string_view key, std::string_view words, int64_t bytes, std::string_view basis,
           std::string_view detail) {
    identity_.sum += bytes;
    identity_.terms.push_back(
        {std::string(key), std::string(words), bytes, std::string(basis), std::string(detail)});
  }

  const model::Tables& tables_;
  const Snapshot& snapshot_;
  Identity identity_;
};

}  // namespace

Identity MakeIdentity(const model::Tables& tables, const Snapshot& snapshot,
                      const std::array<ClassTotal, kMemoryClassCount>& classes, uint64_t rounding) {
  IdentityBuilder builder(tables, snapshot);
  builder.AddClasses(classes, rounding);
  builder.AddCache();
  builder.AddOtherAllocations();
  builder.AddContextAndRest();
  return builder.Finish();
}

FreeSpace MeasureFreeSpace(const Snapshot& snapshot) {
  FreeSpace space;
  for (const SegmentRange& range : MapSegments(snapshot)) {
    FreeSpace::Pool* pool = range.small ? &space.small : &space.large;
    pool->bytes += range.hole_bytes;
    pool->holes += range.holes;
    pool->largest = std::max(pool->largest, range.largest_hole);
    if (range.blocks.empty()) pool->whole_segments += range.end - range.begin;
  }
  return space;
}

}  // namespace vramtrace::attribution
