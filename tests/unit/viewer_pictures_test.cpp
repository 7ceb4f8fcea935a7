// What is drawn without a browser: in a terminal and as SVG.
#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "analyzer/report/units.h"
#include "analyzer/viewer_data/live_tree.h"
#include "analyzer/viewer_data/palette.h"
#include "analyzer/viewer_data/picture.h"
#include "analyzer/viewer_data/tables.h"
#include "analyzer/viewer_data/terminal.h"
#include "tests/support/training_run.h"
#include "tests/unit/analyzer_files.h"

namespace vramtrace::viewer_data {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::TraceBuilder;
using testing::TrainingOptions;
using testing::TrainingRun;

class PicturesTest : public testing::FileTest {
 protected:
  std::unique_ptr<ViewerData> Build(const TrainingOptions& options) {
    TraceBuilder builder;
    TrainingRun(options).Play(&builder);
    return Build(&builder);
  }
  std::unique_ptr<ViewerData> Build(TraceBuilder* builder) {
    auto data = ViewerData::Build(Write(builder));
    EXPECT_TRUE(data.ok()) << data.error().Sentence();
    return std::move(data.value());
  }
};

TEST_F(PicturesTest, TreeAddsUpToTheReport) {
  const auto data = Build(TrainingOptions{});
  const auto& peak = data->report().devices(0).at_peak();
  const std::vector<LiveNode> nodes = BuildLiveTree(*data, 0, data->ExplainedTick(0));
  EXPECT_EQ(nodes[0].bytes, peak.allocated() - peak.rounding());
  EXPECT_EQ(nodes[0].blocks, peak.allocation_count());
  for (const LiveNode& node : nodes) {
    uint64_t children = 0;
    for (const size_t child : node.children) children += nodes[child].bytes;
    if (!node.children.empty()) {
      EXPECT_EQ(children, node.bytes) << node.label;
    }
    uint64_t classes = 0;
    for (const uint64_t bytes : node.by_class) classes += bytes;
    EXPECT_EQ(classes, node.bytes) << node.label;
  }
}

TEST_F(PicturesTest, TerminalShowsThePeakItsClassesAndTheTree) {
  const auto data = Build(TrainingOptions{});
  const auto& device = data->report().devices(0);
  const std::string plain = DrawInTerminal(*data, {100, 40}, false);
  EXPECT_THAT(plain, HasSubstr(report::Size(device.peak_allocated().bytes()) + " peak allocated"));
  for (const auto& row : device.at_peak().classes()) {
    EXPECT_THAT(plain, HasSubstr(row.words() + " " + report::Size(row.bytes())));
  }
  EXPECT_THAT(plain, HasSubstr("100.0 %"));
  EXPECT_THAT(plain, HasSubstr("▲"));
  EXPECT_THAT(plain, Not(HasSubstr("\x1b")));
  EXPECT_THAT(DrawInTerminal(*data, {100, 40}, true), HasSubstr("\x1b[38;2;0;114;178m"));
}

TEST_F(PicturesTest, OutOfMemoryIsSaid) {
  TrainingOptions options;
  options.layers = 4;
  options.fail_at_layer = 2;
  const auto data = Build(options);
  const std::string& summary = data->report().devices(0).out_of_memory().summary();
  EXPECT_THAT(DrawInTerminal(*data, {120, 40}, false), HasSubstr(summary));
  EXPECT_THAT(DrawPicture(*data), HasSubstr(summary));
  EXPECT_THAT(DrawPicture(*data), HasSubstr(">out of memory: step "));
}

TEST_F(PicturesTest, NamesStayText) {
  constexpr const char* kName = "</svg><script>alert(1)</script>\x1b[2J";
  TraceBuilder builder;
  const uint32_t stack = builder.Stack({{kName, 7, kName, 0}});
  builder.Allocate({.address = TraceBuilder::kBaseAddress, .bytes = 512, .requested = 500, .stack = stack});
  builder.Label(v1::Label::KIND_PARAMETER, TraceBuilder::kBaseAddress, 500, kName);
  const auto data = Build(&builder);
  const std::string svg = DrawPicture(*data);
  EXPECT_THAT(svg, HasSubstr("&lt;script&gt;alert(1)"));
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  EXPECT_EQ(svg.find("</svg>"), svg.size() - 7);
  EXPECT_EQ(svg.find('\x1b'), std::string::npos);
  EXPECT_EQ(DrawInTerminal(*data, {100, 40}, false).find('\x1b'), std::string::npos);
}

TEST(PaletteTest, HasARowForEveryClassAndThePagesColours) {
  std::ifstream file(VRAMTRACE_SOURCE_DIR "/viewer/src/draw/theme.ts");
  std::stringstream theme;
  theme << file.rdbuf();
  for (const ClassColor& color : kPalette) {
    EXPECT_LT(BandOf(color.key), kBands) << color.key;
    char row[64];
    std::snprintf(row, sizeof row, "%s: '#%06X'", std::string(color.key).c_str(), color.rgb);
    EXPECT_THAT(theme.str(), HasSubstr(row));
  }
  for (size_t band = 0; band < kBands; ++band) {
    const std::string_view key = ColorOf(band).key;
    EXPECT_EQ(BandOf(key), band) << "a class without a colour of its own";
  }
}

TEST(WrapperTest, IsWhatPackagesPutAroundEveryCall) {
  constexpr const char* kTorch = "/x/site-packages/torch/nn/modules/module.py:5";
  EXPECT_TRUE(IsWrapper("Module._call_impl", kTorch));
  EXPECT_TRUE(IsWrapper("Module._wrapped_call_impl", kTorch));
  EXPECT_TRUE(IsWrapper("context_decorator.<locals>.decorate_context", kTorch));
  EXPECT_TRUE(IsWrapper("f.<locals>.g.<locals>.wrapper", kTorch));
  EXPECT_TRUE(IsWrapper("f.<locals>._wrap_it", kTorch));
  EXPECT_TRUE(IsWrapper("_use_grad_for_differentiable", kTorch));
  EXPECT_TRUE(IsWrapper("Optimizer.profile_hook_step.<locals>.x", kTorch));
  EXPECT_FALSE(IsWrapper("f.<locals>.unwrap", kTorch));
  EXPECT_FALSE(IsWrapper("Linear.forward", kTorch));
  EXPECT_FALSE(IsWrapper("", kTorch));
  EXPECT_FALSE(IsWrapper("g.<locals>.wrapper", "/home/user/train.py:3"));
}

}  // namespace
}  // namespace vramtrace::viewer_data
