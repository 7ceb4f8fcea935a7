// Steps of different sizes in other orders.

#include <gtest/gtest.h>

#include "analyzer/forecast/orders.h"
#include "tests/unit/forecast_streams.h"

namespace vramtrace::forecast {
namespace {

using testing::ReplayOf;
using testing::StreamMaker;

constexpr Bytes kMiB = allocator::kMiB;

// A step asks for two blocks of its size, the second while the first lives.
Stream Steps(const std::vector<Bytes>& sizes) {
  StreamMaker maker;
  const SiteId a = maker.Site(1, Phase::kForward);
  const SiteId b = maker.Site(2, Phase::kForward);
  for (const Bytes size : sizes) {
    const RequestId first = maker.Allocate(a, size);
    const RequestId second = maker.Allocate(b, size);
    maker.Free(first);
    maker.Free(second);
    maker.EndStep();
  }
  return maker.stream();
}

Orders OrdersOf(const Stream& stream) {
  return TryOrders(stream, OptionsOf(stream.facts).value(), ReplayOf(stream));
}

TEST(OrdersTest, EqualStepsHaveOne) { EXPECT_EQ(OrdersOf(Steps({64 * kMiB, 64 * kMiB})).tried, 0U); }

TEST(OrdersTest, RisingSizesReserveMoreThanFallingOnes) {
  const std::vector<Bytes> falling = {90 * kMiB, 64 * kMiB, 50 * kMiB, 34 * kMiB, 22 * kMiB};
  const Stream stream = Steps(falling);
  const Outcome recorded = ReplayOf(stream);
  EXPECT_EQ(recorded.reserved.bytes, 180 * kMiB);  // every later step finds room
  const Orders orders = OrdersOf(stream);
  EXPECT_GE(orders.tried, 3U);
  EXPECT_EQ(orders.lowest, 180 * kMiB);
  const Stream rising = Steps({22 * kMiB, 34 * kMiB, 50 * kMiB, 64 * kMiB, 90 * kMiB});
  EXPECT_GE(orders.highest, ReplayOf(rising).reserved.bytes);
  EXPECT_EQ(ReplayOf(orders.worst).reserved.bytes, orders.highest);
  EXPECT_EQ(orders.outcome.allocated.bytes, recorded.allocated.bytes);
}

TEST(OrdersTest, StepsThatAskElsewhereStay) {
  StreamMaker maker;
  const RequestId weight = maker.Allocate(maker.Site(9, Phase::kLoad), 40 * kMiB, MemoryClass::kWeight);
  maker.Free(weight);
  maker.EndStep();
  for (const Bytes size : {30 * kMiB, 60 * kMiB}) {
    maker.Free(maker.Allocate(maker.Site(1, Phase::kForward), size));
    maker.EndStep();
  }
  const Orders orders = OrdersOf(maker.stream());
  EXPECT_GT(orders.tried, 0U);
  EXPECT_EQ(orders.worst.requests[0].bytes, 40 * kMiB);
}

}  // namespace
}  // namespace vramtrace::forecast
