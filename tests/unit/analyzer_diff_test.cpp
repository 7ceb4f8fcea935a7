// Two recorded runs compared.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <numeric>

#include "analyzer/cli/subcommand.h"
#include "analyzer/report/build.h"
#include "analyzer/report/diff.h"
#include "tests/support/training_run.h"

namespace vramtrace::report {
namespace {

using ::testing::HasSubstr;

class DiffTest : public ::testing::Test {
 protected:
  DiffTest() {
    folder_ = std::filesystem::temp_directory_path() / ("vramtrace-diff-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  ~DiffTest() override { std::filesystem::remove_all(folder_); }

  std::string Write(const char* name, const vramtrace::testing::TrainingOptions& options) {
    vramtrace::testing::TraceBuilder builder;
    vramtrace::testing::TrainingRun(options).Play(&builder);
    const std::string path = (folder_ / name).string();
    builder.Write(path);
    return path;
  }
  static v1::Report ReportOf(const std::string& path) { return BuildReport(path, {}).value().report; }

  static int Call(const std::vector<std::string>& words) {
    std::vector<const char*> arguments{"vramtrace", "diff"};
    for (const std::string& word : words) arguments.push_back(word.c_str());
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int code = cli::RunCommandLine(static_cast<int>(arguments.size()), arguments.data());
    static_cast<void>(::testing::internal::GetCapturedStdout());
    static_cast<void>(::testing::internal::GetCapturedStderr());
    return code;
  }

  std::filesystem::path folder_;
};

TEST(FoldPathTest, NumbersAreOneRow) {
  EXPECT_EQ(FoldPath("transformer.h.11.mlp.c_fc"), "transformer.h.*.mlp.c_fc");
  EXPECT_EQ(FoldPath("0"), "*");
  EXPECT_EQ(FoldPath("layer4.0.conv1"), "layer4.*.conv1");
  EXPECT_EQ(FoldPath(""), "");
}

TEST_F(DiffTest, EveryTableAddsUpToTheChangeOfTensorBytes) {
  const v1::Report a = ReportOf(Write("a.vtrace", {}));
  const v1::Report b = ReportOf(Write("b.vtrace", {.layers = 3, .activation_bytes = 12 << 20, .batch = 12}));
  const v1::Diff diff = MakeDiff(a, b);
  const auto sum = [](const auto& rows) {
    return std::accumulate(rows.begin(), rows.end(), int64_t{0},
                           [](int64_t total, const v1::DiffRow& row) { return total + row.change(); });
  };
  const int64_t change =
      static_cast<int64_t>(diff.b().allocated()) - static_cast<int64_t>(diff.a().allocated());
  EXPECT_GT(change, 0);
  EXPECT_EQ(sum(diff.classes()), change);  // sizes are whole units: nothing is rounded
  EXPECT_EQ(sum(diff.modules()), change);
  EXPECT_EQ(sum(diff.sites()), change);
  ASSERT_GT(diff.reasons_size(), 0);
  EXPECT_EQ(diff.reasons(0).what(), "batch");
  EXPECT_EQ(diff.reasons(0).b(), "12");
  const std::string text = DiffText(diff, {});
  EXPECT_THAT(text, HasSubstr("layers.*"));
  EXPECT_THAT(text, HasSubstr("8 in A, 12 in B"));
}

TEST_F(DiffTest, EqualRunsSaySo) {
  const v1::Report a = ReportOf(Write("a.vtrace", {}));
  const std::string text = DiffText(MakeDiff(a, a), {});
  EXPECT_THAT(text, HasSubstr("look alike"));
  EXPECT_THAT(text, HasSubstr("no change"));
}

TEST_F(DiffTest, FailsOverALimit) {
  const std::string a = Write("a.vtrace", {});
  const std::string b = Write("b.vtrace", {.layers = 8, .activation_bytes = 32 << 20});
  EXPECT_EQ(Call({a, b}), cli::kDone);
  EXPECT_EQ(Call({a, b, "--fail-over", "64MiB"}), cli::kCheckFailed);
  EXPECT_EQ(Call({a, b, "--fail-over", "64GiB"}), cli::kDone);
  EXPECT_EQ(Call({b, a, "--fail-over", "0"}), cli::kDone);
  EXPECT_EQ(Call({a, b, "--fail-over", "much"}), cli::kUsage);
  EXPECT_EQ(Call({a, "/no/such.vtrace"}), cli::kBadInput);
}

}  // namespace
}  // namespace vramtrace::report
