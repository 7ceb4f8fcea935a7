#include "tests/unit/allocator_fixture.h"

namespace vramtrace::allocator {
namespace {

TEST(Card, ChargesAsMeasuredOnCards) {
  constexpr Bytes kKiB = 1024;
  const std::pair<Bytes, Bytes> measured[] = {
      {400, 8 * kKiB},          {3 * kKiB, 8 * kKiB},   {10 * kKiB, 16 * kKiB}, {96 * kKiB, 104 * kKiB},
      {384 * kKiB, 408 * kKiB}, {768 * kKiB, kMiB},     {kMiB, kMiB},           {kMiB + 512 * kKiB, 2 * kMiB},
      {3 * kMiB, 4 * kMiB},     {20 * kMiB, 20 * kMiB},
  };
  for (const auto& [asked, charged] : measured) EXPECT_EQ(NvidiaCharge(asked), charged) << asked;
}

TEST(Card, RefusesWhatOthersHaveTaken) {
  CardMemory card({.total = 64 * kMiB, .used_elsewhere = 40 * kMiB});
  EXPECT_EQ(card.Info().free, 24 * kMiB);
  EXPECT_FALSE(card.Allocate(26 * kMiB));
  const auto address = card.Allocate(24 * kMiB);
  ASSERT_TRUE(address);
  EXPECT_EQ(card.Info().free, 0U);
  card.Free(*address, 24 * kMiB);
  card.SetUsedElsewhere(80 * kMiB);
  EXPECT_EQ(card.Info().free, 0U);
  EXPECT_FALSE(card.Allocate(2 * kMiB));
}

TEST(Card, AddressOrderDecidesWhereANewSegmentLies) {
  CardMemory rising({.total = 1024 * kMiB});
  CardMemory lowest({.total = 1024 * kMiB, .order = AddressOrder::kLowestFree});
  for (CardMemory* card : {&rising, &lowest}) {
    const Address a = *card->Allocate(20 * kMiB);
    const Address b = *card->Allocate(20 * kMiB);
    const Address c = *card->Allocate(20 * kMiB);
    EXPECT_LT(a, b);
    card->Free(a, 20 * kMiB);
    card->Free(b, 20 * kMiB);
    const Address d = *card->Allocate(40 * kMiB);
    if (card == &lowest) {
      EXPECT_EQ(d, a) << "two holes side by side are one";
    } else {
      EXPECT_GT(d, c);
    }
  }
}

// Two free segments of one size, the older one at the higher address.
TEST(GivenAddresses, AndTheReleaseDecideTheTieBetweenEqualBlocks) {
  for (const VersionRules& rules : AllVersions()) {
    CardMemory card({.total = 1024 * kMiB});
    GivenAddresses given(card);
    FinishedStreams events;
    CachingAllocator allocator({}, rules, given, events);
    given.Give(Address{9} << 30);
    given.Give(Address{5} << 30);
    const auto first = std::get<Allocation>(allocator.Allocate(32 * kMiB));
    const auto second = std::get<Allocation>(allocator.Allocate(32 * kMiB));
    EXPECT_EQ(first.address, Address{9} << 30);
    allocator.Free(first.block);
    allocator.Free(second.block);
    const Address taken = std::get<Allocation>(allocator.Allocate(32 * kMiB)).address;
    EXPECT_EQ(taken, rules.version.minor < 12 ? Address{5} << 30 : Address{9} << 30) << rules.version.minor;
    allocator.EmptyCache();
    EXPECT_EQ(card.Info().free, (1024 - 32) * kMiB);
  }
}

// 2.12 alone prefers the block that was carved first to the one at the lower address.
TEST(Ties, WithinOneSegment) {
  for (const VersionRules& rules : AllVersions()) {
    Device device(1024 * kMiB, "", rules.version);
    const Allocation low = device.Allocate(1024);
    device.Allocate(512);
    const Allocation high = device.Allocate(512);
    device.Allocate(512);
    device.allocator.Free(low.block);
    const Allocation carved_later = device.Allocate(512);
    device.Allocate(512);
    device.allocator.Free(carved_later.block);
    device.allocator.Free(high.block);
    const bool oldest = rules.version.minor == 12;
    EXPECT_EQ(device.Allocate(512).address, oldest ? high.address : low.address) << rules.version.minor;
  }
}

TEST(Message, SizesAreWrittenAsPyTorchWritesThem) {
  EXPECT_EQ(FormatSize(0), "0 bytes");
  EXPECT_EQ(FormatSize(1024), "1024 bytes");
  EXPECT_EQ(FormatSize(1025), "1.00 KiB");
  EXPECT_EQ(FormatSize(20 * kMiB), "20.00 MiB");
  EXPECT_EQ(FormatSize(1024 * kMiB), "1024.00 MiB");
  EXPECT_EQ(FormatSize(1024 * kMiB + 1), "1.00 GiB");
}

TEST(Message, EachReleaseHasItsFigures) {
  const OutOfMemory failure{.reason = OutOfMemory::Reason::kNoMemory,
                            .requested = 5,
                            .rounded = 512,
                            .tried = 2 * kMiB,
                            .total = 100 * kMiB,
                            .free = 4 * kMiB,
                            .allowed = 90 * kMiB,
                            .allocated = 50 * kMiB,
                            .reserved = 80 * kMiB,
                            .free_in_private_pools = 10 * kMiB};
  EXPECT_EQ(
      Message(failure, Rules({2, 0}).message, 1, {}),
      "CUDA out of memory. Tried to allocate 2.00 MiB (GPU 1; 100.00 MiB total capacity; 50.00 MiB already "
      "allocated; 4.00 MiB free; 90.00 MiB allowed; 80.00 MiB reserved in total by PyTorch)");
  EXPECT_EQ(
      Message(failure, Rules({2, 1}).message, 1, {}),
      "CUDA out of memory. Tried to allocate 2.00 MiB. GPU 1 has a total capacty of 100.00 MiB of which 4.00 "
      "MiB is free. Of the allocated memory 50.00 MiB is allocated by PyTorch, and 30.00 MiB is reserved by "
      "PyTorch but unallocated.");
  EXPECT_EQ(Message(failure, Rules({2, 3}).message, 0, {}),
            "CUDA out of memory. Tried to allocate 2.00 MiB. GPU ")
      << "the byte 0 of the device's number ended the text";
  EXPECT_EQ(
      Message(failure, Rules({2, 4}).message, 1, {}),
      "CUDA out of memory. Tried to allocate 2.00 MiB. GPU 1 has a total capacity of 100.00 MiB of which "
      "4.00 "
      "MiB is free. Of the allocated memory 60.00 MiB is allocated by PyTorch, with 10.00 MiB allocated in "
      "private pools (e.g., CUDA Graphs), and 20.00 MiB is reserved by PyTorch but unallocated.");
  const ProcessMemory processes{.others = {{77, 3 * kMiB}}, .this_process = 93 * kMiB};
  EXPECT_EQ(
      Message(failure, Rules({2, 15}).message, 1, processes),
      "CUDA out of memory. Tried to allocate 2.00 MiB. GPU 1 has a total capacity of 100.00 MiB of which "
      "4.00 "
      "MiB is free. Process 77 has 3.00 MiB memory in use. Including non-PyTorch memory, this process has "
      "93.00 MiB memory in use. 90.00 MiB allowed; Of the allocated memory 60.00 MiB is allocated by "
      "PyTorch, "
      "with 10.00 MiB allocated in private pools (e.g., CUDA Graphs), and 20.00 MiB is reserved by PyTorch "
      "but "
      "unallocated.");
}

}  // namespace
}  // namespace vramtrace::allocator
