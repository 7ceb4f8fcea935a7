// Runs of several processes: the lines, and which process is explained.
#include <gmock/gmock.h>

#include <vector>

#include "analyzer/report/run.h"

namespace vramtrace::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kMiB = uint64_t{1} << 20;

v1::Report Process(uint32_t rank, uint32_t pid, uint64_t reserved, uint64_t used = 0) {
  v1::Report report;
  report.mutable_program()->set_rank(rank);
  report.mutable_program()->set_world_size(2);
  report.mutable_program()->set_pid(pid);
  report.mutable_trace()->set_complete(true);
  v1::DeviceReport* device = report.add_devices();
  device->mutable_peak_allocated()->set_bytes(reserved / 2);
  device->mutable_peak_reserved()->set_bytes(reserved);
  if (used != 0) device->mutable_peak_used()->set_bytes(used);
  return report;
}

TEST(Run, TheHighestPeakIsExplained) {
  const std::vector<v1::Report> run = {Process(0, 10, 100 * kMiB), Process(1, 11, 300 * kMiB)};
  EXPECT_EQ(MostTelling(run), 1U);
  EXPECT_EQ(WhyThisOne(run, 1), "Rank 1 has the highest peak:");
  // Device used counts where the device was asked, context and other libraries included.
  const std::vector<v1::Report> asked = {Process(0, 10, 100 * kMiB, 900 * kMiB), Process(1, 11, 300 * kMiB)};
  EXPECT_EQ(MostTelling(asked), 0U);
}

TEST(Run, OutOfMemoryComesFirst) {
  std::vector<v1::Report> run = {Process(0, 10, 900 * kMiB), Process(1, 11, 300 * kMiB)};
  run[1].mutable_devices(0)->mutable_at_refusal();
  EXPECT_EQ(MostTelling(run), 1U);
  EXPECT_EQ(WhyThisOne(run, 1), "Rank 1 ran out of memory:");
  EXPECT_THAT(RunText(run), HasSubstr("out of memory"));
}

TEST(Run, ALineADeviceInTheOrderOfRanks) {
  std::vector<v1::Report> run = {Process(1, 10, 300 * kMiB, 700 * kMiB), Process(0, 11, 100 * kMiB)};
  run[1].mutable_trace()->set_complete(false);
  run[0].mutable_steps()->set_completed(1234);
  EXPECT_EQ(RunText(run),
            "A run of 2 processes\n"
            "                 steps  peak allocated   reserved  device used\n"
            "  rank 0  GPU 0      0        50.0 MiB  100.0 MiB            -  killed, or left by _exit\n"
            "  rank 1  GPU 0  1,234       150.0 MiB  300.0 MiB    700.0 MiB  ended\n"
            "Rank 1 allocates 100.0 MiB (200.0 %) more at its peak than rank 0.\n");
}

TEST(Run, TheRankThatFailsFirstIsExplained) {
  std::vector<v1::Report> run = {Process(0, 10, 900 * kMiB), Process(1, 11, 900 * kMiB)};
  constexpr uint64_t kSecond = 1'000'000'000;
  for (v1::Report& report : run) {
    const bool second = report.program().rank() == 1;
    report.mutable_trace()->set_first_event_ns((second ? 5 : 7) * kSecond);
    report.mutable_devices(0)->mutable_at_refusal()->mutable_moment()->set_time_ns(kSecond / 2);
  }
  EXPECT_EQ(MostTelling(run), 1U);
  EXPECT_THAT(RunText(run), HasSubstr("Rank 1 ran out of memory first, rank 0 2.000 s later.\n"));
  run[0].mutable_program()->set_host("elsewhere");
  EXPECT_THAT(RunText(run), HasSubstr("which was first is not known"));
}

TEST(Run, AnImbalanceIsNamedByItsClasses) {
  std::vector<v1::Report> run = {Process(0, 10, 300 * kMiB), Process(1, 11, 500 * kMiB)};
  for (v1::Report& report : run) {
    v1::ClassRow* row = report.mutable_devices(0)->mutable_at_peak()->add_classes();
    row->set_key("gradient");
    row->set_words("gradients");
    row->set_bytes(report.program().rank() == 1 ? 120 * kMiB : 20 * kMiB);
  }
  EXPECT_THAT(RunText(run), HasSubstr("more at its peak than rank 0: gradients +100.0 MiB.\n"));
}

// Two processes that no launcher has numbered, and one that used no memory.
TEST(Run, WithoutRanksProcessesAreNamedByTheirIds) {
  std::vector<v1::Report> run = {Process(0, 11, 300 * kMiB), Process(0, 10, 100 * kMiB)};
  run[1].clear_devices();
  const std::string text = RunText(run);
  EXPECT_THAT(text, HasSubstr("process 10  -"));
  EXPECT_THAT(text, HasSubstr("allocated nothing"));
  EXPECT_LT(text.find("process 10"), text.find("process 11"));
  EXPECT_THAT(text, Not(HasSubstr("rank")));
  EXPECT_EQ(WhyThisOne(run, 0), "Process 11 has the highest peak:");
}

}  // namespace
}  // namespace vramtrace::report
