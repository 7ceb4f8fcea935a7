#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "analyzer/cli/subcommand.h"
#include "analyzer/cli/trace_argument.h"
#include "analyzer/report/units.h"
#include "analyzer/viewer_data/build.h"
#include "analyzer/viewer_data/page.h"

namespace vramtrace::cli {
namespace {

namespace fs = std::filesystem;

// Starts the desktop's opener and does not wait for it. False when there is none or no display.
bool OpenInBrowser(const std::string& file) {
  if (std::getenv("DISPLAY") == nullptr && std::getenv("WAYLAND_DISPLAY") == nullptr) return false;
  const pid_t child = ::fork();
  if (child != 0) return child > 0;
  ::execlp("xdg-open", "xdg-open", file.c_str(), static_cast<char*>(nullptr));
  ::_exit(127);
}

class ViewCommand final : public Subcommand {
 public:
  [[nodiscard]] std::string_view Name() const override { return "view"; }
  [[nodiscard]] std::string_view Summary() const override {
    return "Write a trace as one HTML page to look at in a browser";
  }
  [[nodiscard]] std::string_view Example() const override {
    return "vramtrace view vramtrace-train.py-4711.vtrace -o peak.html";
  }

  void AddOptions(CLI::App& app) override {
    app.add_option("trace", trace_, "A trace file; the newest *.vtrace here when none is given");
    app.add_option("-o,--output", output_, "The page to write; TRACE.html when none is given");
    app.add_flag("--open", open_, "Open the page in a browser");
    app.add_option("--max-blocks", blocks_,
                   "Write every block's life up to this many; of a longer trace those alive at the peaks")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
  }

  [[nodiscard]] int Run() override {
    const trace::Result<std::string> path = ChooseTrace(trace_);
    if (!path.ok()) return Fail(path.error().Sentence());
    const trace::Result<viewer_data::ViewerData> data = viewer_data::BuildViewerData(path.value(), {blocks_});
    if (!data.ok()) return Fail(data.error().Sentence());
    if (viewer_data::PageTemplate().empty()) {
      return Fail(
          "this build has no viewer. Install Node 20.19 or newer and npm, configure with "
          "-DVRAMTRACE_BUILD_VIEWER=ON and build again; until then: vramtrace analyze " +
          path.value());
    }
    const std::string page = viewer_data::MakePage(data.value().file);
    // An embedded page above this takes browsers more than a few seconds to open.
    constexpr size_t kMostBytes = size_t{30} << 20;
    if (page.size() > kMostBytes) {
      return Fail(fmt::format("the page would hold {}, more than {}; ask for less with --max-blocks {}",
                              report::Size(page.size()), report::Size(kMostBytes), blocks_ / 4));
    }
    const std::string output = output_.empty() ? path.value() + ".html" : output_;
    std::ofstream file(output, std::ios::binary | std::ios::trunc);
    file << page;
    file.close();
    if (!file) return Fail(fmt::format("{}: cannot be written: {}", output, std::strerror(errno)));
    fmt::print("{}\n", output);
    fmt::print(stderr, "vramtrace: {} blocks ({}), {}\n", report::Grouped(data.value().blocks),
               data.value().complete ? "all of the trace" : "those alive at the peaks",
               report::Size(page.size()));
    if (open_ && !OpenInBrowser(output)) {
      fmt::print(stderr, "vramtrace: no browser could be started here: open file://{}\n",
                 fs::absolute(output).string());
    }
    return data.value().report.damaged ? kBadInput : kDone;
  }

 private:
  static int Fail(const std::string& sentence) {
    fmt::print(stderr, "vramtrace: {}\n", sentence);
    return kBadInput;
  }

  std::string trace_;
  std::string output_;
  bool open_ = false;
  size_t blocks_ = viewer_data::DataOptions{}.blocks;
};

}  // namespace

std::unique_ptr<Subcommand> MakeViewCommand() { return std::make_unique<ViewCommand>(); }

}  // namespace vramtrace::cli
