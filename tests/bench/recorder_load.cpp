// recorder_load steps EVENTS: training steps of some 500 events each, until EVENTS are recorded.
// recorder_load threads THREADS EVENTS: THREADS threads record EVENTS block events each, at once.
// recorder_load blocks EVENTS: one thread, block events with a stack of 30 Python frames.
// Prints one line of JSON: what was recorded, and what that took.

#include <sys/resource.h>
#include <time.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "preload/recorder/record/recorder.h"
#include "tests/unit/retention_workload.h"

// Stand-ins for preload/recorder/stacks: a fingerprint that reads the code object, as the real one does.
namespace vramtrace::stacks {

uint64_t CodeFingerprint(const void* code) noexcept { return *static_cast<const uint64_t*>(code); }
bool DescribeCode(const void*, CodeText* text) noexcept {
  *text = CodeText{"/src/model.py", "Model.forward", 1};
  return true;
}
uint32_t LineOfCode(const void*, int32_t byte_offset) noexcept { return static_cast<uint32_t>(byte_offset); }

}  // namespace vramtrace::stacks

namespace vramtrace {
namespace {

constexpr int kDepth = 30;
constexpr size_t kStacks = 333;  // distinct ones in a step of GPT-2

struct Frames {
  alignas(64) std::array<std::array<uint64_t, 24>, 64> codes{};
  std::array<stacks::PythonFrame, kStacks * kDepth> frames{};

  Frames() {
    for (size_t i = 0; i < codes.size(); ++i) codes[i][0] = i + 1;
    for (size_t i = 0; i < frames.size(); ++i) {
      const size_t own = i % kDepth < 5 ? i / kDepth : 0;
      frames[i] = {codes[(own + i % kDepth) % codes.size()].data(), static_cast<int32_t>(own), nullptr};
    }
  }
  [[nodiscard]] record::CapturedStack At(uint64_t n) const {
    record::CapturedStack stack;
    stack.python = frames.data() + n % kStacks * kDepth;
    stack.python_count = kDepth;
    return stack;
  }
};

uint64_t Clock(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000U + static_cast<uint64_t>(time.tv_nsec);
}

// Memory of this process that is no file's: the recorder's tables, not the trace's pages.
uint64_t AnonymousBytes() {
  std::FILE* const status = std::fopen("/proc/self/status", "r");
  if (status == nullptr) return 0;
  char line[256];
  unsigned long kilobytes = 0;
  while (std::fgets(line, sizeof(line), status) != nullptr) {
    if (std::sscanf(line, "RssAnon: %lu", &kilobytes) == 1) break;
  }
  std::fclose(status);
  return kilobytes * 1024;
}

record::BlockEvent BlockAt(uint64_t n, uint64_t thread) {
  return {.device = static_cast<uint32_t>(thread),
          .address = 0x7f0000000000 + (thread << 40) + n % 4096 * 1048576,
          .bytes = 1 + n,
          .requested = 1 + n,
          .allocated_total = n,
          .reserved_total = 1 << 30,
          .autograd = {.sequence_number = n % 2000, .operator_name = nullptr, .node_thread = 0}};
}

struct Outcome {
  uint64_t events = 0;
  uint64_t peak = 0;
  uint64_t peak_step = 0;
  uint64_t steps = 0;
};

Outcome Steps(uint64_t events, const Frames& frames) {
  Outcome outcome;
  const tests::WorkloadSettings run{.steps = UINT64_MAX, .highest_step = events / 1000};
  tests::RunWorkload(run, [&](const tests::WorkloadEvent& event) {
    using Kind = tests::WorkloadEvent::Kind;
    const record::BlockEvent block{.address = event.address,
                                   .bytes = event.bytes,
                                   .requested = event.bytes,
                                   .allocated_total = event.allocated,
                                   .reserved_total = event.reserved};
    const record::CapturedStack stack = frames.At(outcome.events);
    if (event.kind == Kind::kAllocate) record::BlockAllocated(block, stack);
    if (event.kind == Kind::kFree) record::BlockFreed(block, stack);
    if (event.kind == Kind::kStepBegin || event.kind == Kind::kStepEnd) {
      record::StepMarked(event.step, event.kind == Kind::kStepEnd, "AdamW", 1);
    }
    if (event.kind == Kind::kStepEnd) outcome.steps = event.step + 1;
    if (event.allocated > outcome.peak) {
      outcome.peak = event.allocated;
      outcome.peak_step = event.step;
    }
    return ++outcome.events < events;
  });
  return outcome;
}

Outcome Threads(uint64_t threads, uint64_t events, const Frames& frames) {
  std::vector<std::thread> running;
  std::atomic<bool> go{false};
  for (uint64_t thread = 0; thread < threads; ++thread) {
    running.emplace_back([&frames, &go, thread, events] {
      while (!go) std::this_thread::yield();
      for (uint64_t n = 0; n < events; ++n) record::BlockAllocated(BlockAt(n, thread), frames.At(n));
    });
  }
  go = true;
  for (std::thread& thread : running) thread.join();
  return {.events = threads * events};
}

int Run(int argc, char** argv) {
  if (argc < 3) return 2;
  static const Frames frames;
  const auto number = [argv](int i) { return static_cast<uint64_t>(std::strtoull(argv[i], nullptr, 10)); };
  record::BlockAllocated(BlockAt(0, 0), frames.At(0));  // the file opens, buffers are made
  record::BlockFreed(BlockAt(0, 0), {});
  const uint64_t memory = AnonymousBytes();
  const uint64_t wall = Clock(CLOCK_MONOTONIC);
  const uint64_t processor = Clock(CLOCK_PROCESS_CPUTIME_ID);
  Outcome outcome;
  if (std::strcmp(argv[1], "steps") == 0) {
    outcome = Steps(number(2), frames);
  } else if (std::strcmp(argv[1], "threads") == 0 && argc == 4) {
    outcome = Threads(number(2), number(3), frames);
  } else if (std::strcmp(argv[1], "blocks") == 0) {
    outcome = Threads(1, number(2), frames);
  } else {
    return 2;
  }
  std::printf(
      "{\"events\": %llu, \"peak\": %llu, \"peak_step\": %llu, \"steps\": %llu, \"wall_ns\": %llu, "
      "\"processor_ns\": %llu, \"memory\": %lld, \"recording\": %s}\n",
      static_cast<unsigned long long>(outcome.events), static_cast<unsigned long long>(outcome.peak),
      static_cast<unsigned long long>(outcome.peak_step), static_cast<unsigned long long>(outcome.steps),
      static_cast<unsigned long long>(Clock(CLOCK_MONOTONIC) - wall),
      static_cast<unsigned long long>(Clock(CLOCK_PROCESS_CPUTIME_ID) - processor),
      static_cast<long long>(AnonymousBytes()) - static_cast<long long>(memory),
      record::Recording() ? "true" : "false");
  return 0;
}

}  // namespace
}  // namespace vramtrace

int main(int argc, char** argv) { return vramtrace::Run(argc, argv); }
