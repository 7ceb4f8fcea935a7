// One process whose peers look like it.

#include <gtest/gtest.h>
#include <nccl.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "preload/simulator/core/contents.h"
#include "preload/simulator/core/memory.h"

namespace {

using vramtrace::simulator::Status;

constexpr int kRanks = 4;

// A device buffer of numbers.
class Buffer {
 public:
  explicit Buffer(std::vector<float> values) : count_(values.size()) {
    EXPECT_EQ(vramtrace::simulator::Allocate(0, Bytes(), &address_), Status::kOk);
    EXPECT_EQ(vramtrace::simulator::Store(address_, values.data(), Bytes()), Status::kOk);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { EXPECT_EQ(vramtrace::simulator::Free(address_), Status::kOk); }

  [[nodiscard]] std::vector<float> Read() const {
    std::vector<float> values(count_);
    EXPECT_EQ(vramtrace::simulator::Peek(values.data(), address_, Bytes()), Status::kOk);
    return values;
  }
  [[nodiscard]] float* get() const { return static_cast<float*>(address_); }

 private:
  [[nodiscard]] uint64_t Bytes() const { return count_ * sizeof(float); }
  size_t count_;
  void* address_ = nullptr;
};

uint64_t Outside() { return vramtrace::simulator::PeekMemory(0).outside_bytes; }

class Nccl : public testing::Test {
 protected:
  void SetUp() override {
    ncclUniqueId id;
    ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    ASSERT_EQ(ncclCommInitRank(&comm_, kRanks, id, 1), ncclSuccess);
  }
  void TearDown() override { EXPECT_EQ(ncclCommDestroy(comm_), ncclSuccess); }
  ncclComm_t comm_ = nullptr;
};

TEST(NcclMemory, CommunicatorsChargeWhatTheyCost) {
  const uint64_t before = Outside();
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  const struct {
    int ranks;
    uint64_t bytes;
  } cases[] = {{1, 0}, {2, 358612992}, {4, 411041792}, {64, 411041792}};
  for (const auto& c : cases) {
    ncclComm_t comm = nullptr;
    ASSERT_EQ(ncclCommInitRank(&comm, c.ranks, id, 0), ncclSuccess);
    EXPECT_EQ(Outside() - before, c.bytes) << c.ranks;
    ASSERT_EQ(ncclCommDestroy(comm), ncclSuccess);
    EXPECT_EQ(Outside(), before);
  }
}

TEST(NcclMemory, BadRanksAreRefused) {
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRank(&comm, 2, {}, 2), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRank(&comm, 0, {}, 0), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRank(nullptr, 2, {}, 0), ncclInvalidArgument);
  int count = 0;
  EXPECT_EQ(ncclCommCount(nullptr, &count), ncclInvalidArgument);
}

TEST(NcclMemory, AllocationsAreWholePages) {
  void* pointer = nullptr;
  ASSERT_EQ(ncclMemAlloc(&pointer, 1), ncclSuccess);
  vramtrace::simulator::Range range;
  ASSERT_TRUE(vramtrace::simulator::FindRange(pointer, &range));
  EXPECT_EQ(range.bytes, vramtrace::simulator::kPageBytes);
  EXPECT_EQ(ncclMemFree(pointer), ncclSuccess);
}

TEST_F(Nccl, KnowsItsPlace) {
  int value = 0;
  EXPECT_EQ(ncclCommCount(comm_, &value), ncclSuccess);
  EXPECT_EQ(value, kRanks);
  EXPECT_EQ(ncclCommUserRank(comm_, &value), ncclSuccess);
  EXPECT_EQ(value, 1);
  ncclResult_t error = ncclInternalError;
  EXPECT_EQ(ncclCommGetAsyncError(comm_, &error), ncclSuccess);
  EXPECT_EQ(error, ncclSuccess);
}

TEST_F(Nccl, AllReduceSumsEqualPeers) {
  Buffer in({1, 2, 3});
  Buffer out({0, 0, 0});
  ASSERT_EQ(ncclAllReduce(in.get(), out.get(), 3, ncclFloat32, ncclSum, comm_, nullptr), ncclSuccess);
  EXPECT_EQ(out.Read(), (std::vector<float>{4, 8, 12}));
  ASSERT_EQ(ncclAllReduce(in.get(), in.get(), 3, ncclFloat32, ncclAvg, comm_, nullptr), ncclSuccess);
  EXPECT_EQ(in.Read(), (std::vector<float>{1, 2, 3}));
}

TEST_F(Nccl, GatherAndScatterPlaceTheParts) {
  Buffer mine({5, 6});
  Buffer all(std::vector<float>(2 * kRanks, 0));
  ASSERT_EQ(ncclAllGather(mine.get(), all.get(), 2, ncclFloat32, comm_, nullptr), ncclSuccess);
  EXPECT_EQ(all.Read(), (std::vector<float>{5, 6, 5, 6, 5, 6, 5, 6}));
  std::vector<float> numbers(2 * kRanks);
  std::iota(numbers.begin(), numbers.end(), 0.0F);
  Buffer parts(numbers);
  ASSERT_EQ(ncclReduceScatter(parts.get(), mine.get(), 2, ncclFloat32, ncclSum, comm_, nullptr), ncclSuccess);
  EXPECT_EQ(mine.Read(), (std::vector<float>{2 * kRanks, 3 * kRanks}));  // the second part, four times
}

// Every peer sends this rank what this rank would send itself.
TEST_F(Nccl, AllToAllTakesThePartMeantForMe) {
  Buffer in({10, 11, 12, 13});
  Buffer out(std::vector<float>(kRanks, 0));
  ASSERT_EQ(ncclAlltoAll(in.get(), out.get(), 1, ncclFloat32, comm_, nullptr), ncclSuccess);
  EXPECT_EQ(out.Read(), (std::vector<float>{11, 11, 11, 11}));
}

// PyTorch gathers a list by one broadcast from each rank in a group.
TEST_F(Nccl, GroupedBroadcastsFillThePeersParts) {
  Buffer mine({7, 8});
  Buffer all(std::vector<float>(2 * kRanks, 0));
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (int root = 0; root < kRanks; ++root) {
    float* part = all.get() + 2 * root;
    ASSERT_EQ(ncclBroadcast(root == 1 ? mine.get() : part, part, 2, ncclFloat32, root, comm_, nullptr),
              ncclSuccess);
  }
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  EXPECT_EQ(all.Read(), (std::vector<float>{7, 8, 7, 8, 7, 8, 7, 8}));
}

TEST_F(Nccl, LoneBroadcastKeepsWhatIsThere) {
  Buffer buffer({3, 4});
  ASSERT_EQ(ncclBcast(buffer.get(), 2, ncclFloat32, 0, comm_, nullptr), ncclSuccess);
  EXPECT_EQ(buffer.Read(), (std::vector<float>{3, 4}));
}

TEST_F(Nccl, PipelineStageReceivesWhatItSendsOn) {
  Buffer out({1, 2});
  Buffer in({9, 9});
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  ASSERT_EQ(ncclRecv(in.get(), 2, ncclFloat32, 0, comm_, nullptr), ncclSuccess);
  ASSERT_EQ(ncclSend(out.get(), 2, ncclFloat32, 2, comm_, nullptr), ncclSuccess);
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  EXPECT_EQ(in.Read(), (std::vector<float>{1, 2}));
  // Nothing known: zero, never what lay there.
  ASSERT_EQ(ncclRecv(in.get(), 2, ncclFloat32, 0, comm_, nullptr), ncclSuccess);
  EXPECT_EQ(in.Read(), (std::vector<float>{0, 0}));
}

TEST_F(Nccl, GroupsMustBalance) {
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
}

// How many peers share the colour is not known: nothing may be written behind the buffer of the new group.
TEST_F(Nccl, SplitGroupWritesOnlyItsOwnPart) {
  ncclComm_t child = nullptr;
  ASSERT_EQ(ncclCommSplit(comm_, 7, 1, &child, nullptr), ncclSuccess);
  Buffer mine({5});
  Buffer pair({0, 0, -1, -1});  // a group of two, and what follows in memory
  ASSERT_EQ(ncclAllGather(mine.get(), pair.get(), 1, ncclFloat32, child, nullptr), ncclSuccess);
  EXPECT_EQ(pair.Read(), (std::vector<float>{0, 5, -1, -1}));
  ASSERT_EQ(ncclCommDestroy(child), ncclSuccess);
  ASSERT_EQ(ncclCommSplit(comm_, NCCL_SPLIT_NOCOLOR, 0, &child, nullptr), ncclSuccess);
  EXPECT_EQ(child, nullptr);
}

TEST_F(Nccl, ShrinkRenumbers) {
  int excluded[] = {0};
  ncclComm_t child = nullptr;
  ASSERT_EQ(ncclCommShrink(comm_, excluded, 1, &child, nullptr, 0), ncclSuccess);
  int value = -1;
  EXPECT_EQ(ncclCommUserRank(child, &value), ncclSuccess);
  EXPECT_EQ(value, 0);
  EXPECT_EQ(ncclCommCount(child, &value), ncclSuccess);
  EXPECT_EQ(value, kRanks - 1);
  EXPECT_EQ(ncclCommDestroy(child), ncclSuccess);
  int myself[] = {1};
  EXPECT_EQ(ncclCommShrink(comm_, myself, 1, &child, nullptr, 0), ncclInvalidArgument);
}

TEST_F(Nccl, ArgumentsAreChecked) {
  Buffer buffer({0});
  EXPECT_EQ(ncclBroadcast(buffer.get(), buffer.get(), 1, ncclFloat32, kRanks, comm_, nullptr),
            ncclInvalidArgument);
  EXPECT_EQ(ncclAllReduce(buffer.get(), buffer.get(), 1, ncclNumTypes, ncclSum, comm_, nullptr),
            ncclInvalidArgument);
  EXPECT_EQ(ncclAllReduce(buffer.get(), buffer.get(), 1, ncclFloat32, ncclSum, nullptr, nullptr),
            ncclInvalidArgument);
}

}  // namespace
