#include <gtest/gtest.h>

#include "analyzer/forecast/reductions.h"
#include "analyzer/forecast/size_laws.h"
#include "tests/unit/forecast_streams.h"

namespace vramtrace::forecast {
namespace {

using testing::StreamMaker;

// With 3072 outputs the kernel has 24 blocks side by side on 132 multiprocessors of 2048 threads.
constexpr Bytes kFull = 138'412'032;

// A gradient of 3072 sums: its buffer, 1 MiB a sample until it is full, and 24 semaphores.
Stream Sum(uint64_t batch, Bytes buffer, std::string gpu = "NVIDIA H200", Bytes semaphores = 96) {
  StreamMaker maker(batch);
  maker.stream().facts.gpu = std::move(gpu);
  const SiteId site = maker.Site(1, Phase::kBackward, "mlp.0");
  const RequestId first = maker.Allocate(site, buffer, MemoryClass::kTemporary);
  const RequestId second =
      maker.Allocate(maker.Site(2, Phase::kBackward, "mlp.0"), semaphores, MemoryClass::kTemporary);
  maker.Free(second);
  maker.Free(first);
  return maker.stream();
}

constexpr Bytes kMiB = Bytes{1} << 20;

Bytes AtBatchOf(Stream stream, const Stream& other, uint64_t batch) {
  SetLawsByTwo(&stream, other);
  return AtBatch(std::move(stream), batch).requests[0].bytes;
}

TEST(Reductions, StopGrowingWhereTheCardIsFull) {
  const Stream eight = Sum(8, 40 * kMiB);
  const Stream sixteen = Sum(16, 80 * kMiB);
  EXPECT_EQ(AtBatchOf(sixteen, eight, 12), 60 * kMiB);
  EXPECT_EQ(AtBatchOf(sixteen, eight, 64), kFull);
  EXPECT_EQ(AtBatchOf(sixteen, eight, 300), kFull);
  EXPECT_EQ(AtBatchOf(sixteen, eight, 1600), 8000 * kMiB / 16) << "every thread has its share sixteen times";
}

TEST(Reductions, AreLimitedFromOneRecordingToo) {
  Stream stream = Sum(16, 80 * kMiB);
  SetLawsByRule(&stream);
  EXPECT_EQ(AtBatch(stream, 64).requests[0].bytes, kFull);
  Stream full = Sum(64, kFull);
  SetLawsByRule(&full);
  EXPECT_EQ(AtBatch(full, 128).requests[0].bytes, kFull);
}

TEST(Reductions, AreKnownByTheirSemaphores) {
  // Two tensors one after the other are none: the second is no small multiple of four bytes.
  const Stream eight = Sum(8, 40 * kMiB, "NVIDIA H200", kMiB);
  const Stream sixteen = Sum(16, 80 * kMiB, "NVIDIA H200", kMiB);
  EXPECT_EQ(AtBatchOf(sixteen, eight, 64), 320 * kMiB);
}

TEST(Reductions, AreLeftAloneOnADeviceThatTheCatalogueDoesNotHave) {
  const Stream eight = Sum(8, 40 * kMiB, "Some Card");
  const Stream sixteen = Sum(16, 80 * kMiB, "Some Card");
  EXPECT_EQ(AtBatchOf(sixteen, eight, 64), 320 * kMiB);
}

TEST(Reductions, OfAnotherKernelAreLeftAlone) {
  const Stream eight = Sum(8, 200 * kMiB);
  const Stream sixteen = Sum(16, 400 * kMiB);
  EXPECT_EQ(AtBatchOf(sixteen, eight, 32), 800 * kMiB) << "beyond what this kernel can have";
}

TEST(Reductions, LimitsScaleWithTheSize) {
  Stream stream = Sum(16, 80 * kMiB);
  SetLawsByTwo(&stream, Sum(8, 40 * kMiB));
  EXPECT_EQ(stream.requests[0].law.Times(1, 2).At(64), kFull / 2);
}

}  // namespace
}  // namespace vramtrace::forecast
