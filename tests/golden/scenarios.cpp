#include "tests/golden/scenarios.h"

#include "tests/golden/stored.h"
#include "tests/support/training_run.h"

namespace vramtrace::testing {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kGiB = 1 << 30;
constexpr uint64_t kBase = TraceBuilder::kBaseAddress;

std::string Play(const TrainingOptions& options) {
  TraceBuilder builder;
  TrainingRun(options).Play(&builder);
  return builder.Bytes();
}

std::string Training() { return Play({.layers = 4, .steps = 3}); }
std::string WithoutLabels() { return Play({.layers = 2, .steps = 2, .labels = false}); }
std::string OutOfMemoryInTheFirstForward() {
  return Play({.layers = 6, .activation_bytes = 900 * kMiB, .total_bytes = 4 * kGiB, .fail_at_layer = 3});
}
std::string OutOfMemoryInALaterStep() {
  return Play({.layers = 4, .steps = 3, .total_bytes = 2 * kGiB, .fail_at_layer = 2, .fail_at_step = 2});
}

// 300 MiB cached free between live blocks, and none of it in one piece of 100 MiB.
std::string Fragmentation() {
  TraceBuilder builder;
  constexpr uint64_t kTotal = 2 * kGiB;
  constexpr uint64_t kContext = 300 * kMiB;
  builder.Query(kTotal - kContext, kTotal, v1::MemoryQuery::REASON_CONTEXT);
  const uint32_t stack = builder.Stack({{"/home/user/serve.py", 9, "main"}});
  uint64_t reserved = 0;
  uint64_t allocated = 0;
  for (uint64_t i = 0; i < 10; ++i) {
    const uint64_t segment = kBase + i * 200 * kMiB;
    builder.DriverAllocate(segment, 120 * kMiB);
    reserved += 120 * kMiB;
    allocated += 90 * kMiB;
    builder.Allocate({.address = segment,
                      .bytes = 90 * kMiB,
                      .requested = 90 * kMiB - 300,
                      .stack = stack,
                      .allocated_total = allocated,
                      .reserved_total = reserved});
  }
  builder.DriverAllocate(0, 600 * kMiB, "libc10_cuda.so", 2);
  builder.Query(kTotal - kContext - reserved, kTotal, v1::MemoryQuery::REASON_OUT_OF_MEMORY);
  builder.OutOfMemory(
      {.bytes = 100 * kMiB, .stack = stack, .allocated_total = allocated, .reserved_total = reserved});
  builder.AddTrailer();
  return builder.Bytes();
}

// Pages of an expandable segment, one of them unmapped again.
std::string ExpandableSegments() {
  TraceBuilder builder;
  builder.Query(1900 * kMiB, 2 * kGiB, v1::MemoryQuery::REASON_CONTEXT);
  for (uint64_t page = 0; page < 3; ++page) {
    builder.DriverAllocate(1000 + page, 20 * kMiB, "libc10_cuda.so", 0, v1::MEMORY_KIND_PHYSICAL);
    builder.Map(kBase + page * 20 * kMiB, 20 * kMiB, 1000 + page);
  }
  builder.Allocate({.address = kBase,
                    .bytes = 50 * kMiB,
                    .requested = 50 * kMiB,
                    .allocated_total = 50 * kMiB,
                    .reserved_total = 60 * kMiB});
  builder.Query(1840 * kMiB, 2 * kGiB, v1::MemoryQuery::REASON_EXIT);
  builder.Free({.address = kBase, .reserved_total = 60 * kMiB});
  builder.Unmap(kBase + 40 * kMiB, 20 * kMiB);
  builder.DriverFree(1002, "libc10_cuda.so", v1::MEMORY_KIND_PHYSICAL);
  builder.AddTrailer();
  return builder.Bytes();
}

// A program without PyTorch, with a library that takes memory too.
std::string DriverOnly() {
  TraceBuilder builder;
  builder.Query(3 * kGiB, 4 * kGiB, v1::MemoryQuery::REASON_CONTEXT);
  builder.DriverAllocate(kBase, 512 * kMiB, "simulate");
  builder.DriverAllocate(kBase + kGiB, 64 * kMiB, "libcufft.so.11");
  builder.DriverAllocate(kBase + 2 * kGiB, 256 * kMiB, "simulate", 0, v1::MEMORY_KIND_MANAGED);
  builder.HostAllocate(0x1000, 16 * kMiB);
  builder.Query(2490 * kMiB, 4 * kGiB, v1::MemoryQuery::REASON_PROGRAM);
  builder.AddTrailer();
  return builder.Bytes();
}

std::string LossesAndTwoDevices() {
  TraceBuilder builder;
  builder.AddFeature("autograd_node", false, "a node's fields are not where any known version has them");
  builder.DriverAllocate(kBase, 20 * kMiB);
  builder.Allocate(
      {.address = kBase, .bytes = 8 * kMiB, .allocated_total = 9 * kMiB, .reserved_total = 20 * kMiB});
  builder.Allocate({.address = kBase + kGiB, .bytes = 3 * kMiB, .device = 1});
  builder.Free({.address = kBase + 77 * kMiB});
  v1::Packet loss;
  loss.mutable_loss()->set_reason(v1::Loss::REASON_CHUNK);
  loss.mutable_loss()->set_events(41);
  builder.Add(loss, true);
  return builder.Bytes();
}

// The chunk of the backward thread is gone, the main thread's is cut in the middle.
std::string Truncated() {
  const std::string whole = Play({.layers = 2, .steps = 2});
  return whole.substr(0, whole.size() - 2 * 256 * 1024 + 1500);
}

// What version 1 wrote, kept for ever.
std::string StoredV1() { return ReadStored("v1.vtrace.gz"); }

constexpr Scenario kScenarios[] = {
    {"training", Training},
    {"without_labels", WithoutLabels},
    {"out_of_memory_in_the_first_forward", OutOfMemoryInTheFirstForward},
    {"out_of_memory_in_a_later_step", OutOfMemoryInALaterStep},
    {"fragmentation", Fragmentation},
    {"expandable_segments", ExpandableSegments, false, true},
    {"driver_only", DriverOnly, false, true},
    {"losses_and_two_devices", LossesAndTwoDevices, false, true},
    {"truncated", Truncated, true},
    {"stored_v1", StoredV1},
};

}  // namespace

std::span<const Scenario> Scenarios() { return kScenarios; }

}  // namespace vramtrace::testing
