// A trace that is kept below a limit, read by the analyzer and compared with a referee that saw everything.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "analyzer/timeline/scan.h"
#include "analyzer/trace/event_stream.h"
#include "preload/recorder/record/recorder.h"
#include "tests/unit/record_scenario.h"
#include "tests/unit/retention_workload.h"

namespace vramtrace::tests {
namespace {

using testing::IsEmpty;
using testing::SizeIs;
using trace::Statistic;

// Runs what it is given on a thread of its own, while the caller waits: two threads, one order.
class OtherThread {
 public:
  OtherThread() : thread_([this] { Serve(); }) {}
  ~OtherThread() {
    Run(nullptr);
    thread_.join();
  }
  OtherThread(const OtherThread&) = delete;
  OtherThread& operator=(const OtherThread&) = delete;

  void Run(const WorkloadEvent* event) {
    std::unique_lock lock(mutex_);
    event_ = event;
    pending_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !pending_; });
  }

 private:
  void Serve() {
    std::unique_lock lock(mutex_);
    for (bool going = true; going;) {
      changed_.wait(lock, [this] { return pending_; });
      going = event_ != nullptr;
      if (going) RecordEvent(*event_);
      pending_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  const WorkloadEvent* event_ = nullptr;
  bool pending_ = false;
  std::thread thread_;
};

// What the analyzer makes of a trace.
struct Reading {
  std::shared_ptr<trace::TraceFile> file;
  std::shared_ptr<const model::Tables> tables;
  std::shared_ptr<const model::StackTable> stacks;
  timeline::Scan scan;
  std::set<uint64_t> numbers;  // of the events that are there

  explicit Reading(const std::string& path) {
    auto opened = trace::TraceFile::Open(path);
    EXPECT_TRUE(opened.ok());
    if (!opened.ok()) return;
    file = opened.value();
    tables = model::ReadTables(*file);
    stacks = std::make_shared<model::StackTable>(*tables);
    scan = timeline::ScanTrace(file, tables, stacks);
    trace::EventStream stream(file);
    while (const trace::Event* event = stream.Next()) {
      if (!event->has_sequence) continue;
      EXPECT_TRUE(numbers.insert(event->sequence).second) << event->sequence;
    }
  }

  // Allocations alive behind an event, by address.
  [[nodiscard]] std::map<uint64_t, uint64_t> LiveAt(uint64_t sequence) const {
    timeline::Replay replay(tables, stacks);
    trace::EventStream stream(file);
    for (const trace::Event* event = stream.Next(); event != nullptr && event->sequence <= sequence;
         event = stream.Next()) {
      (void)replay.Apply(*event);
    }
    std::map<uint64_t, uint64_t> live;
    replay.devices()[0].memory.blocks().ForEach(
        [&live](uint64_t address, const timeline::Block& block) { live[address] = block.sequence; });
    return live;
  }

  [[nodiscard]] bool HasWhole(const StepTruth& step) const {
    for (uint64_t n = step.first_event; n <= step.last_event; ++n) {
      if (!numbers.contains(n)) return false;
    }
    return true;
  }
};

// Nothing lost, nothing that contradicts itself.
void CheckSound(const Reading& reading) {
  const trace::LoadStatistics& statistics = reading.file->statistics();
  EXPECT_FALSE(statistics.Damaged());
  EXPECT_EQ(statistics.Get(Statistic::kSequenceGap).count, 0U)
      << "what was dropped is told apart from losses";
  const timeline::DeviceScan& device = reading.scan.devices.at(0);
  EXPECT_EQ(device.contradictions.free_without_allocation, 0U);
  EXPECT_EQ(device.contradictions.allocation_over_live, 0U);
  EXPECT_EQ(device.contradictions.free_size_differs, 0U);
  EXPECT_EQ(device.contradictions.driver_free_unknown, 0U);
  EXPECT_EQ(device.counters.allocated_differences, 0U)
      << "PyTorch's own counter agrees at every event it is in";
}

struct Case {
  const char* name;
  const char* write;
  bool two_threads;
  const char* limit;
  uint64_t limit_bytes;
};

class Retention : public testing::TestWithParam<Case> {};

TEST_P(Retention, AnEndlessRunKeepsFirstLastAndPeakStepsAndEveryPeak) {
  constexpr WorkloadSettings kRun{.steps = 700, .highest_step = 333};
  const RunTruth truth = CountWorkload(kRun);
  Scenario scenario;
  const auto result = scenario.Run([&kRun] {
    setenv("VRAMTRACE_MAX_SIZE", GetParam().limit, 1);
    setenv("VRAMTRACE_WRITE", GetParam().write, 1);
    OtherThread other;
    RunWorkload(kRun, [&other](const WorkloadEvent& event) {
      if (event.backward && GetParam().two_threads) {
        other.Run(&event);
      } else {
        RecordEvent(event);
      }
      return true;
    });
  });
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_EQ(result.standard_error, "");
  ASSERT_THAT(result.traces, SizeIs(1));
  EXPECT_LE(std::filesystem::file_size(result.traces[0]), GetParam().limit_bytes);

  const Reading reading(result.traces[0]);
  CheckSound(reading);
  EXPECT_THAT(reading.tables->dropped, testing::Not(IsEmpty())) << "the limit was never reached";
  EXPECT_EQ(reading.scan.completed_steps, kRun.steps);
  const timeline::DeviceScan& device = reading.scan.devices.at(0);
  EXPECT_EQ(truth.peak_step, kRun.highest_step);
  EXPECT_EQ(device.allocated.bytes, truth.peak);
  EXPECT_EQ(device.allocated.instant.sequence, truth.peak_event);
  EXPECT_EQ(device.allocated.instant.step, truth.peak_step);
  EXPECT_EQ(device.dropped_peak, 0U);
  EXPECT_EQ(reading.LiveAt(truth.peak_event), truth.live_at_peak);
  EXPECT_EQ(reading.LiveAt(truth.last_block_event), truth.live);
  for (const uint64_t step : {uint64_t{0}, uint64_t{1}, uint64_t{2}, truth.peak_step, kRun.steps - 3,
                              kRun.steps - 2, kRun.steps - 1}) {
    EXPECT_TRUE(reading.HasWhole(truth.steps[step])) << "step " << step;
  }
  // Of a small file the later summaries are of several steps each.
  uint64_t next = 0;
  for (const model::StepSummaryRow& summary : reading.tables->step_summaries) {
    ASSERT_EQ(summary.first_step, next);
    next += summary.steps;
    ASSERT_LE(next, kRun.steps);
    StepTruth together;
    for (uint64_t step = summary.first_step; step < next; ++step) {
      together.peak = std::max(together.peak, truth.steps[step].peak);
      together.low = std::min(together.low, truth.steps[step].low);
    }
    EXPECT_EQ(summary.peak, together.peak) << summary.first_step;
    EXPECT_EQ(summary.low, together.low) << summary.first_step;
    if (summary.steps == 1) {
      EXPECT_EQ(device.step_peaks[summary.first_step], together.peak) << summary.first_step;
    }
  }
  EXPECT_GE(next + 1, kRun.steps);
  EXPECT_THAT(device.step_peaks, SizeIs(kRun.steps));
}

INSTANTIATE_TEST_SUITE_P(Cases, Retention,
                         testing::Values(Case{"mapped", "mapped", false, "4MiB", 4U << 20},
                                         Case{"plain", "plain", false, "4MiB", 4U << 20},
                                         Case{"two_threads", "mapped", true, "4MiB", 4U << 20},
                                         Case{"least", "mapped", true, "2MiB", 2U << 20}),
                         [](const auto& tested) { return std::string(tested.param.name); });

// Threads that did something once and then nothing must not keep everything.
TEST(RetentionThreads, IdleThreadsHoldNothingBack) {
  constexpr WorkloadSettings kRun{.steps = 500, .highest_step = 200};
  Scenario scenario;
  const auto result = scenario.Run([&kRun] {
    setenv("VRAMTRACE_MAX_SIZE", "4MiB", 1);
    std::atomic<int> started{0};
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < 5; ++i) {
      threads.emplace_back([&started, &stop, i] {
        record::HostAllocated({.function = "cudaHostAlloc", .address = 0x1000 + i, .bytes = 64}, {});
        ++started;
        while (!stop) usleep(1000);
        // It comes back: its chunk was taken away meanwhile.
        record::HostFreed({.function = "cudaFreeHost", .address = 0x1000 + i}, {});
      });
    }
    while (started < 5) usleep(1000);
    RunWorkload(kRun, [](const WorkloadEvent& event) {
      RecordEvent(event);
      return true;
    });
    stop = true;
    for (std::thread& thread : threads) thread.join();
  });
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_EQ(result.standard_error, "");
  ASSERT_THAT(result.traces, SizeIs(1));
  EXPECT_LE(std::filesystem::file_size(result.traces[0]), 4U << 20);
  const Reading reading(result.traces[0]);
  CheckSound(reading);
  EXPECT_EQ(reading.scan.completed_steps, kRun.steps);
  EXPECT_EQ(reading.scan.host.peak, 5U * 64);
  EXPECT_EQ(reading.scan.host.bytes, 0U) << "every thread's last event is there";
}

// A step that is larger than the file: parts of it stand in for steps, the peak's part is whole.
TEST(RetentionSteps, AStepLargerThanTheFileStillHasItsPeak) {
  constexpr WorkloadSettings kRun{.steps = 1, .highest_step = 0, .blocks = 60'000};
  const RunTruth truth = CountWorkload(kRun);
  Scenario scenario;
  const auto result = scenario.Run([&kRun] {
    setenv("VRAMTRACE_MAX_SIZE", "5MiB", 1);
    RunWorkload(kRun, [](const WorkloadEvent& event) {
      RecordEvent(event);
      return true;
    });
  });
  EXPECT_EQ(result.standard_error, "");
  ASSERT_THAT(result.traces, SizeIs(1));
  EXPECT_LE(std::filesystem::file_size(result.traces[0]), 5U << 20);
  const Reading reading(result.traces[0]);
  CheckSound(reading);
  EXPECT_THAT(reading.tables->dropped, testing::Not(IsEmpty()));
  EXPECT_EQ(reading.scan.devices.at(0).allocated.bytes, truth.peak);
  EXPECT_EQ(reading.LiveAt(truth.peak_event), truth.live_at_peak);
  EXPECT_EQ(reading.LiveAt(truth.last_block_event), truth.live);
}

// Killed while it copies, while it gives chunks back, at any instant: what a hook returned from counts.
TEST(RetentionKill, AtAnyInstantTheLiveSetIsExact) {
  constexpr WorkloadSettings kRun{.steps = UINT64_MAX, .highest_step = 60};
  auto* const returned = static_cast<std::atomic<uint64_t>*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(returned, MAP_FAILED);
  std::mt19937 random(static_cast<uint32_t>(getpid()));
  int retained = 0;
  constexpr int kRounds = 12;
  for (int round = 0; round < kRounds; ++round) {
    *returned = 0;
    Scenario scenario;
    const pid_t child = scenario.Start([&kRun, returned] {
      alarm(300);
      setenv("VRAMTRACE_MAX_SIZE", "2MiB", 1);
      RunWorkload(kRun, [returned](const WorkloadEvent& event) {
        RecordEvent(event);
        returned->fetch_add(1);
        return true;
      });
    });
    const uint64_t target = std::uniform_int_distribution<uint64_t>(50'000, 150'000)(random);
    while (*returned < target && waitpid(child, nullptr, WNOHANG) == 0) usleep(200);
    usleep(std::uniform_int_distribution<useconds_t>(0, 3000)(random));
    ASSERT_EQ(kill(child, SIGKILL), 0);
    const auto result = scenario.Wait(child);
    ASSERT_EQ(result.exit_status, -SIGKILL);
    ASSERT_THAT(result.traces, SizeIs(1));
    const Reading reading(result.traces[0]);
    CheckSound(reading);
    if (!reading.tables->dropped.empty()) ++retained;
    ASSERT_FALSE(reading.numbers.empty());
    const uint64_t last = *reading.numbers.rbegin();
    ASSERT_GE(last, *returned);
    ASSERT_LE(last, *returned + 1);
    const RunTruth truth = CountWorkload(kRun, last);
    EXPECT_EQ(reading.scan.devices.at(0).allocated.bytes, truth.peak);
    EXPECT_EQ(reading.LiveAt(truth.last_block_event), truth.live);
  }
  EXPECT_GT(retained, kRounds / 3) << "too few rounds got beyond the limit to prove anything";
  munmap(returned, 4096);
}

// Fewer than 32 chunks leave nothing to choose from.
TEST(RetentionOff, WithoutALimitNothingIsDropped) {
  Scenario scenario;
  const auto result = scenario.Run([] {
    setenv("VRAMTRACE_MAX_SIZE", "0", 1);
    RunWorkload({.steps = 300, .highest_step = 5}, [](const WorkloadEvent& event) {
      RecordEvent(event);
      return true;
    });
  });
  ASSERT_THAT(result.traces, SizeIs(1));
  const Reading reading(result.traces[0]);
  EXPECT_THAT(reading.tables->dropped, IsEmpty());
  EXPECT_EQ(reading.numbers.size(), *reading.numbers.rbegin());
  EXPECT_THAT(reading.tables->step_summaries, SizeIs(300)) << "the summaries are always there";
}

}  // namespace
}  // namespace vramtrace::tests
