#include <gtest/gtest.h>

#include "analyzer/attribution/identity.h"

namespace vramtrace::attribution {
namespace {

constexpr uint64_t kMiB = 1 << 20;

timeline::Snapshot Snapshot() {
  timeline::Snapshot snapshot;
  snapshot.segments[100 * kMiB] = {20 * kMiB, {}, {}, trace::MemoryKind::kDevice, true};
  snapshot.segments[200 * kMiB] = {2 * kMiB, {}, {}, trace::MemoryKind::kDevice, true};
  snapshot.segments[300 * kMiB] = {7 * kMiB, model::StringId{1}, {}, trace::MemoryKind::kDevice, false};
  timeline::LiveBlock live;
  live.block.address = 104 * kMiB;
  live.block.bytes = 4 * kMiB;
  live.block.requested = 4 * kMiB - 100;
  snapshot.blocks.push_back(live);
  snapshot.allocated = 4 * kMiB;
  snapshot.reserved = 22 * kMiB;
  snapshot.driver_bytes = 29 * kMiB;
  snapshot.device_used = 400 * kMiB;
  snapshot.context_bytes = 360 * kMiB;
  return snapshot;
}

std::array<ClassTotal, kMemoryClassCount> Classes(const timeline::Snapshot& snapshot) {
  std::array<ClassTotal, kMemoryClassCount> classes{};
  classes[static_cast<size_t>(MemoryClass::kWeight)] = {snapshot.blocks[0].block.TensorBytes(), 4 * kMiB, 1,
                                                        0};
  return classes;
}

int64_t TermOf(const Identity& identity, std::string_view key) {
  for (const Term& term : identity.terms) {
    if (term.key == key) return term.bytes;
  }
  return INT64_MIN;
}

TEST(Identity, AddsUpToTheByte) {
  model::Tables tables;
  tables.strings.Add(1, "libnccl.so.2", 10);
  const timeline::Snapshot snapshot = Snapshot();
  const Identity identity = MakeIdentity(tables, snapshot, Classes(snapshot), 100);
  EXPECT_EQ(identity.device_used, 400 * kMiB);
  EXPECT_EQ(identity.sum, static_cast<int64_t>(400 * kMiB));
  EXPECT_EQ(identity.Mismatch(), 0);
  EXPECT_EQ(TermOf(identity, "weight"), static_cast<int64_t>(4 * kMiB - 100));
  EXPECT_EQ(TermOf(identity, "rounding"), 100);
  EXPECT_EQ(TermOf(identity, "cached_free"), static_cast<int64_t>(18 * kMiB));
  EXPECT_EQ(TermOf(identity, "driver:libnccl.so.2"), static_cast<int64_t>(7 * kMiB));
  EXPECT_EQ(TermOf(identity, "context"), static_cast<int64_t>(360 * kMiB));
  EXPECT_EQ(TermOf(identity, "rest"), static_cast<int64_t>(11 * kMiB));
}

TEST(Identity, MemoryThatOthersGaveBackIsANegativeRest) {
  timeline::Snapshot snapshot = Snapshot();
  snapshot.device_used = 380 * kMiB;
  const Identity identity = MakeIdentity({}, snapshot, Classes(snapshot), 100);
  EXPECT_EQ(TermOf(identity, "rest"), -static_cast<int64_t>(9 * kMiB));
  EXPECT_EQ(identity.Mismatch(), 0);
}

TEST(Identity, WithoutADeviceAnswerItIsWhatWasRecorded) {
  timeline::Snapshot snapshot = Snapshot();
  snapshot.device_used.reset();
  const Identity identity = MakeIdentity({}, snapshot, Classes(snapshot), 100);
  EXPECT_FALSE(identity.device_used_known);
  EXPECT_EQ(identity.device_used, 29 * kMiB);
  EXPECT_EQ(identity.Mismatch(), 0);
}

TEST(Identity, BytesThatOnlyPyTorchCountedAreATerm) {
  timeline::Snapshot snapshot = Snapshot();
  snapshot.unrecorded_allocated = 512;
  snapshot.unrecorded_reserved = 2 * kMiB;
  const Identity identity = MakeIdentity({}, snapshot, Classes(snapshot), 100);
  EXPECT_EQ(TermOf(identity, "unrecorded_blocks"), 512);
  EXPECT_EQ(TermOf(identity, "cached_free"), static_cast<int64_t>(20 * kMiB - 512));
  EXPECT_EQ(identity.Mismatch(), 0);
}

TEST(Identity, UnmappedPhysicalMemoryIsATerm) {
  timeline::Snapshot snapshot = Snapshot();
  snapshot.physical[1] = {20 * kMiB, {}, {}, trace::MemoryKind::kPhysical, true};
  snapshot.driver_bytes += 20 * kMiB;
  snapshot.device_used.reset();
  const Identity identity = MakeIdentity({}, snapshot, Classes(snapshot), 100);
  EXPECT_EQ(TermOf(identity, "unmapped"), static_cast<int64_t>(20 * kMiB));
  EXPECT_EQ(identity.Mismatch(), 0);
}

TEST(Identity, BlocksWhoseSegmentsWereNotSeenStandForThemselves) {
  timeline::Snapshot snapshot = Snapshot();
  snapshot.segments.clear();
  snapshot.reserved = snapshot.driver_bytes = 0;
  snapshot.device_used.reset();
  const Identity identity = MakeIdentity({}, snapshot, Classes(snapshot), 100);
  EXPECT_EQ(TermOf(identity, "cached_free"), INT64_MIN);  // nothing is known of it
  EXPECT_EQ(identity.device_used, 4 * kMiB);
  EXPECT_EQ(identity.Mismatch(), 0);
}

// A trace that contradicts itself shows it instead of hiding it in a term.
TEST(Identity, ContradictionIsAMismatch) {
  timeline::Snapshot snapshot = Snapshot();
  snapshot.device_used.reset();
  snapshot.driver_bytes -= kMiB;
  EXPECT_NE(MakeIdentity({}, snapshot, Classes(snapshot), 100).Mismatch(), 0);
}

TEST(FreeSpace, HolesAreFoundAroundBlocks) {
  const FreeSpace space = MeasureFreeSpace(Snapshot());
  EXPECT_EQ(space.large.bytes, 16 * kMiB);
  EXPECT_EQ(space.large.holes, 2U);
  EXPECT_EQ(space.large.largest, 12 * kMiB);
  EXPECT_EQ(space.small.bytes, 2 * kMiB);
  EXPECT_EQ(space.small.whole_segments, 2 * kMiB);
}

TEST(FreeSpace, NeighbouringMappedPagesAreOnePiece) {
  timeline::Snapshot snapshot;
  snapshot.mappings[1000 * kMiB] = {20 * kMiB, 1, true};
  snapshot.mappings[1020 * kMiB] = {20 * kMiB, 2, true};
  snapshot.mappings[2000 * kMiB] = {20 * kMiB, 3, false};  // not the caching allocator's
  const FreeSpace space = MeasureFreeSpace(snapshot);
  EXPECT_EQ(space.large.largest, 40 * kMiB);
  EXPECT_EQ(space.large.holes, 1U);
}

}  // namespace
}  // namespace vramtrace::attribution
