#include <gtest/gtest.h>

#include "analyzer/attribution/out_of_memory.h"

namespace vramtrace::attribution {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kGiB = 1 << 30;

struct Case {
  timeline::Refusal refusal;
  timeline::Snapshot snapshot;
  FreeSpace space;

  Case() {
    refusal.requested = 100 * kMiB + 512;
    snapshot.allocated = 20 * kGiB;
    snapshot.reserved = 20 * kGiB + 50 * kMiB;
    snapshot.total_bytes = 24 * kGiB;
    snapshot.device_used = 24 * kGiB - 60 * kMiB;
    space.large = {50 * kMiB, 3, 30 * kMiB, 0};
  }
  [[nodiscard]] OutOfMemory Explain() const { return ExplainRefusal(refusal, snapshot, space); }
};

TEST(OutOfMemory, ShortageSaysWhatIsMissing) {
  const OutOfMemory facts = Case().Explain();
  EXPECT_EQ(facts.reason, Reason::kShortage);
  EXPECT_EQ(facts.from_driver, 102 * kMiB);  // the next multiple of 2 MiB
  EXPECT_FALSE(facts.from_driver_recorded);
  EXPECT_EQ(facts.device_free, 60 * kMiB);
  EXPECT_EQ(facts.missing, 42 * kMiB);
  EXPECT_EQ(facts.device_needed, 24 * kGiB + 42 * kMiB);
}

TEST(OutOfMemory, EnoughCachedInPiecesTooSmallIsFragmentation) {
  Case c;
  c.snapshot.reserved = 20 * kGiB + 300 * kMiB;
  EXPECT_EQ(c.Explain().reason, Reason::kFragmentation);
}

TEST(OutOfMemory, RefusedWithEnoughFreeIsALimit) {
  Case c;
  c.snapshot.device_used = 10 * kGiB;
  EXPECT_EQ(c.Explain().reason, Reason::kLimit);
}

TEST(OutOfMemory, RecordedDriverRequestIsPreferred) {
  Case c;
  c.refusal.driver_requested = 120 * kMiB;
  const OutOfMemory facts = c.Explain();
  EXPECT_TRUE(facts.from_driver_recorded);
  EXPECT_EQ(facts.from_driver, 120 * kMiB);
}

TEST(OutOfMemory, WithoutADeviceAnswerTheReasonIsUnknown) {
  Case c;
  c.snapshot.device_used.reset();
  EXPECT_EQ(c.Explain().reason, Reason::kUnknown);
}

TEST(OutOfMemory, SmallRequestsLookAtTheSmallPool) {
  Case c;
  c.refusal.requested = 512;
  c.space.small = {1024, 2, 512, 0};
  EXPECT_EQ(c.Explain().largest_hole, 512U);
  EXPECT_EQ(c.Explain().from_driver, 2 * kMiB);
}

TEST(OutOfMemory, RefusalOutsideTheCachingAllocatorIsTakenAsAsked) {
  Case c;
  c.refusal.caching_allocator = false;
  c.refusal.requested = 70 * kMiB + 1;
  const OutOfMemory facts = c.Explain();
  EXPECT_EQ(facts.from_driver, 70 * kMiB + 1);
  EXPECT_EQ(facts.reason, Reason::kShortage);
}

}  // namespace
}  // namespace vramtrace::attribution
