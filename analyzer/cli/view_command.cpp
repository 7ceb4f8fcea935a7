#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "analyzer/cli/advice.h"
#include "analyzer/cli/color.h"
#include "analyzer/cli/subcommand.h"
#include "analyzer/cli/trace_argument.h"
#include "analyzer/cli/view_forecast.h"
#include "analyzer/report/units.h"
#include "analyzer/viewer_data/build.h"
#include "analyzer/viewer_data/page.h"
#include "analyzer/viewer_data/serve.h"
#include "analyzer/viewer_data/terminal.h"

namespace vramtrace::cli {
namespace {

namespace fs = std::filesystem;
using viewer_data::Diagnoses;
using viewer_data::FileOptions;
using viewer_data::ServedTrace;
using viewer_data::ViewerData;
using viewer_data::WrittenFile;

// Starts the desktop's opener and does not wait for it. False when there is none or no display.
bool OpenInBrowser(const std::string& address) {
  if (std::getenv("DISPLAY") == nullptr && std::getenv("WAYLAND_DISPLAY") == nullptr) return false;
  const pid_t child = ::fork();
  if (child != 0) return child > 0;
  ::execlp("xdg-open", "xdg-open", address.c_str(), static_cast<char*>(nullptr));
  ::_exit(127);
}

std::string ThisHost() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "this-machine";
}

class ViewCommand final : public Subcommand {
 public:
  [[nodiscard]] std::string_view Name() const override { return "view"; }
  [[nodiscard]] std::string_view Summary() const override {
    return "Write a trace as one HTML page to look at in a browser, or serve it";
  }
  [[nodiscard]] std::string_view Example() const override {
    return "vramtrace view vramtrace-train.py-4711.vtrace -o peak.html";
  }

  void AddOptions(CLI::App& app) override {
    app.add_option(
        "trace", trace_,
        "A trace, or the folder of a run: its ranks side by side; the newest *.vtrace here when none "
        "is given");
    app.add_option("-o,--output", output_, "The page to write; TRACE.html when none is given");
    app.add_option("--against", base_, "Another trace, to compare with");
    app.add_flag("--open", open_, "Open the page in a browser");
    CLI::Option* serve =
        app.add_flag("--serve", serve_,
                     "Serve the page on 127.0.0.1 until interrupted: for traces too large for one page");
    app.add_option("--port", port_, "With --serve: this port instead of the first free one from 8700 on")
        ->check(CLI::Range(1, 65535))
        ->needs(serve);
    app.add_flag("--watch", watch_, "With --serve: read the trace again while the program writes it")
        ->needs(serve);
    app.add_flag("--no-forecast", no_forecast_,
                 "Leave out the what-if panel, which takes seconds to prepare");
    app.add_flag("--terminal", terminal_, "Draw the timeline and the top of the flame graph here")
        ->excludes(serve);
    app.add_option("--max-blocks", blocks_,
                   "Write every block's life up to this many; of a longer trace those alive at the peaks")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
  }

  [[nodiscard]] int Run() override {
    const trace::Result<std::vector<std::string>> paths = ChooseTraces(trace_);
    if (!paths.ok()) return Fail(paths.error().Sentence());
    const Diagnoses diagnoses = no_forecast_ ? Diagnoses::kWithoutReplays : Diagnoses::kWithReplays;
    for (const std::string& path : paths.value()) traces_.push_back({path, false, {}, {}, diagnoses});
    if (!base_.empty()) traces_.push_back({base_, true, {}, {}, Diagnoses::kNone});
    if (terminal_) return Draw();
    if (viewer_data::PageTemplate().empty()) {
      return Fail(
          "this build has no viewer. Install Node 20.19 or newer and npm, configure with "
          "-DVRAMTRACE_BUILD_VIEWER=ON and build again; until then: vramtrace view --terminal " +
          traces_.front().path);
    }
    return serve_ ? Serve() : Write();
  }

 private:
  // An embedded page above this takes browsers more than a few seconds to open.
  static constexpr size_t kMostBytes = size_t{30} << 20;

  [[nodiscard]] int Draw() {
    int code = kDone;
    for (const ServedTrace& trace : traces_) {
      const auto data = ViewerData::Build(trace.path, Diagnoses::kNone);
      if (!data.ok()) return Fail(data.error().Sentence());
      fmt::print("{}",
                 viewer_data::DrawInTerminal(*data.value(), viewer_data::SizeOfTerminal(), ColorWanted()));
      if (data.value()->damaged()) code = kBadInput;
    }
    return code;
  }

  [[nodiscard]] int Write() {
    std::vector<std::unique_ptr<ViewerData>> all;
    int code = kDone;
    for (ServedTrace& trace : traces_) {
      auto data = ViewerData::Build(trace.path, trace.diagnoses);
      if (!data.ok()) return Fail(data.error().Sentence());
      if (data.value()->damaged()) code = kBadInput;
      AskForecast(data.value()->built(), &trace);
      all.push_back(std::move(data.value()));
    }
    // Everything where it fits, else what is alive at the peaks.
    FileOptions options;
    options.blocks = blocks_ / all.size();
    Page page = MakePage(all, options);
    if (page.html.size() > kMostBytes && page.complete) {
      options.blocks = 0;
      page = MakePage(all, options);
    }
    if (page.html.size() > kMostBytes) {
      return Fail(
          fmt::format("the page would hold {}, more than {}; look at it with: vramtrace view --serve {}",
                      report::Size(page.html.size()), report::Size(kMostBytes), traces_.front().path));
    }
    const std::string output = output_.empty() ? traces_.front().path + ".html" : output_;
    std::ofstream file(output, std::ios::binary | std::ios::trunc);
    file << page.html;
    file.close();
    if (!file) return Fail(fmt::format("{}: cannot be written: {}", output, std::strerror(errno)));
    // It holds the program's arguments and names: as private as the trace.
    ::chmod(output.c_str(), 0600);
    fmt::print("{}\n", output);
    fmt::print(stderr, "vramtrace: {} blocks ({}), {}\n", report::Grouped(page.blocks),
               page.complete ? "all of the trace" : "those alive at the peaks; all with --serve",
               report::Size(page.html.size()));
    if (open_ && !OpenInBrowser(output)) {
      fmt::print(stderr, "vramtrace: no browser could be started here: open file://{}\n",
                 fs::absolute(output).string());
    }
    return code;
  }

  struct Page {
    std::string html;
    size_t blocks = 0;
    bool complete = true;
  };
  [[nodiscard]] Page MakePage(const std::vector<std::unique_ptr<ViewerData>>& all,
                              FileOptions options) const {
    Page page;
    std::vector<std::string> files;
    for (size_t i = 0; i < all.size(); ++i) {
      options.base = traces_[i].base;
      options.forecasts = traces_[i].forecasts;
      options.whole_run = traces_[i].whole_run;
      WrittenFile written = all[i]->Write(options);
      page.blocks += written.blocks;
      page.complete = page.complete && written.complete;
      files.push_back(std::move(written.bytes));
    }
    page.html = viewer_data::MakePage(files);
    return page;
  }

  // A run that others are compared with is not asked what it would take.
  void AskForecast(const report::BuiltReport& built, ServedTrace* trace) const {
    if (trace->base) return;
    trace->whole_run = CommandsForWholeRun(built.report);
    if (!no_forecast_) trace->forecasts = ForecastsFor(built);
  }

  [[nodiscard]] int Serve() {
    FileOptions options;
    options.blocks = blocks_;
    for (ServedTrace& trace : traces_) {
      const auto built = report::BuildReport(trace.path, {.allocations = 1});
      if (!built.ok()) return Fail(built.error().Sentence());
      AskForecast(built.value(), &trace);
    }
    auto pages = viewer_data::Pages::Open(traces_, options);
    if (!pages.ok()) return Fail(pages.error().Sentence());
    auto server = viewer_data::Server::Listen(std::move(pages.value()), {port_, watch_});
    if (!server.ok()) return Fail(server.error().Sentence());
    const std::string address = server.value()->Address();
    fmt::print("{}\n", address);
    std::fflush(stdout);
    if (!open_ || !OpenInBrowser(address)) {
      const uint16_t port = server.value()->port();
      fmt::print(stderr,
                 "vramtrace: open that address in a browser. From another machine, first: ssh -L "
                 "{}:127.0.0.1:{} {}\nvramtrace: Ctrl-C ends it\n",
                 port, port, ThisHost());
    }
    server.value()->Run();
    return kDone;
  }

  static int Fail(const std::string& sentence) {
    fmt::print(stderr, "vramtrace: {}\n", sentence);
    return kBadInput;
  }

  std::vector<ServedTrace> traces_;
  std::string trace_;
  std::string base_;
  std::string output_;
  bool open_ = false;
  bool serve_ = false;
  bool watch_ = false;
  bool terminal_ = false;
  bool no_forecast_ = false;
  uint16_t port_ = 0;
  size_t blocks_ = FileOptions{}.blocks;
};

}  // namespace

std::unique_ptr<Subcommand> MakeViewCommand() { return std::make_unique<ViewCommand>(); }

}  // namespace vramtrace::cli
