#include <gtest/gtest.h>

#include "preload/simulator/core/kernels.h"
#include "tests/unit/simulator_fixture.h"

namespace vramtrace::simulator {
namespace {

int Blocks(int threads, uint64_t shared = 0, KernelFacts facts = {}) {
  int blocks = -1;
  EXPECT_EQ(Occupancy(0, facts, threads, shared, &blocks), Status::kOk);
  return blocks;
}

// On an RTX 4090 (8.9): 1,536 threads, 24 blocks, 65,536 registers, 100 KiB of shared memory a
// multiprocessor.
TEST(Occupancy, IsLimitedByThreads) {
  EXPECT_EQ(Blocks(1024), 1);
  EXPECT_EQ(Blocks(512), 3);
  EXPECT_EQ(Blocks(256), 6);
  EXPECT_EQ(Blocks(250), 6) << "whole warps";
}

TEST(Occupancy, IsLimitedByBlocks) { EXPECT_EQ(Blocks(32), 24); }

TEST(Occupancy, IsLimitedByRegisters) {
  KernelFacts heavy;
  heavy.registers = 128;
  EXPECT_EQ(Blocks(256, 0, heavy), 2);
  heavy.registers = 255;
  EXPECT_EQ(Blocks(256, 0, heavy), 1);
  EXPECT_EQ(Blocks(512, 0, heavy), 0);
}

TEST(Occupancy, IsLimitedBySharedMemory) {
  EXPECT_EQ(Blocks(64, 48 * kKibibyte), 2) << "49 KiB with the system's part";
  EXPECT_EQ(Blocks(64, 99 * kKibibyte), 1);
  EXPECT_EQ(Blocks(64, 100 * kKibibyte), 0) << "more than a block may have";
}

TEST(Occupancy, RefusesBlocksThatAreNone) {
  int blocks = 0;
  EXPECT_EQ(Occupancy(0, {}, 0, 0, &blocks), Status::kInvalidValue);
  EXPECT_EQ(Blocks(1025), 0);
}

TEST(CodeVersion, IsTheNewestAWheelCarries) {
  struct Row {
    const char* gpu;
    int version;
  };
  for (const Row& row : {Row{"t4", 75}, Row{"a100", 80}, Row{"rtx3090", 86}, Row{"rtx4090", 86},
                         Row{"h100", 90}, Row{"b200", 100}, Row{"b300", 100}, Row{"rtx5090", 120}}) {
    Environment gpu("VRAMTRACE_SIM_GPU", row.gpu);
    EXPECT_FRESH({ EXPECT_EQ(CodeVersion(0), row.version) << row.gpu; });
  }
}

TEST(Kernels, KeepNamesAndSharedMemory) {
  static int kernel;
  EXPECT_STREQ(KernelName(&kernel), "?");
  RegisterKernel(&kernel, "axpy");
  EXPECT_STREQ(KernelName(&kernel), "axpy");
  EXPECT_EQ(SetMaxDynamicShared(&kernel, 0, 101376), Status::kOk);
  EXPECT_EQ(FactsOf(&kernel).max_dynamic_shared_bytes, 101376);
  EXPECT_EQ(SetMaxDynamicShared(&kernel, 0, 101377), Status::kInvalidValue);
}

}  // namespace
}  // namespace vramtrace::simulator
