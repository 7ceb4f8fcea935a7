#include "analyzer/attribution/out_of_memory.h"

#include "analyzer/allocator/size_classes.h"

namespace vramtrace::attribution {
namespace {

// What was asked of the driver when no refused call was recorded: by the allocator's rules, default settings.
uint64_t FromDriver(const timeline::Refusal& refusal) {
  if (!refusal.caching_allocator || refusal.requested >= allocator::kTooLarge) return refusal.requested;
  return allocator::SegmentBytes(refusal.requested, allocator::kLargeSegment);
}

Reason Judge(const OutOfMemory& facts) {
  // First the pieces: enough cached bytes and none large enough is fragmentation whatever the device had
  // free.
  const bool cached_enough = facts.requested <= facts.cached_free && facts.requested > facts.largest_hole;
  if (!facts.free_known)
    return facts.caching_allocator && cached_enough ? Reason::kFragmentation : Reason::kUnknown;
  if (facts.from_driver <= facts.device_free) return Reason::kLimit;
  if (facts.caching_allocator && cached_enough) return Reason::kFragmentation;
  return Reason::kShortage;
}

}  // namespace

OutOfMemory ExplainRefusal(const timeline::Refusal& refusal, const timeline::Snapshot& snapshot,
                           const FreeSpace& free_space) {
  OutOfMemory facts;
  facts.requested = refusal.requested;
  facts.caching_allocator = refusal.caching_allocator;
  facts.from_driver_recorded = refusal.driver_requested != 0;
  facts.from_driver = facts.from_driver_recorded ? refusal.driver_requested : FromDriver(refusal);
  facts.allocated = snapshot.allocated;
  facts.reserved = snapshot.reserved;
  if (snapshot.unrecorded_reserved > 0) facts.reserved += static_cast<uint64_t>(snapshot.unrecorded_reserved);
  facts.cached_free = facts.reserved > facts.allocated ? facts.reserved - facts.allocated : 0;
  const FreeSpace::Pool& pool =
      facts.requested <= allocator::kLargestSmall ? free_space.small : free_space.large;
  facts.largest_hole = pool.largest;
  facts.holes = pool.holes;
  facts.device_total = snapshot.total_bytes;
  facts.free_known = snapshot.device_used.has_value();
  if (facts.free_known) {
    facts.device_used = *snapshot.device_used;
    facts.device_free = facts.device_total > facts.device_used ? facts.device_total - facts.device_used : 0;
    facts.missing = facts.from_driver > facts.device_free ? facts.from_driver - facts.device_free : 0;
    facts.device_needed = facts.device_total + facts.missing;
  }
  facts.reason = Judge(facts);
  return facts;
}

}  // namespace vramtrace::attribution
