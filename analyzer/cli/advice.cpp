#include "analyzer/cli/advice.h"

#include <fmt/format.h>

#include "analyzer/cli/launch/units.h"
#include "analyzer/forecast/build_stream.h"
#include "analyzer/report/forecast.h"
#include "analyzer/symbolize/names.h"

namespace vramtrace::cli {
namespace {

constexpr double kClose = 0.9;  // of the card's memory

// The device that died, else the fullest of those that came close; nullptr: none.
const report::v1::DeviceReport* InTrouble(const report::v1::Report& report) {
  const report::v1::DeviceReport* worst = nullptr;
  double highest = kClose;
  for (const report::v1::DeviceReport& device : report.devices()) {
    if (device.has_out_of_memory()) return &device;
    if (device.total_bytes() == 0) continue;
    const double share =
        static_cast<double>(device.peak_used().bytes()) / static_cast<double>(device.total_bytes());
    if (share < highest) continue;
    highest = share;
    worst = &device;
  }
  return worst;
}

// The id of the card with the most memory: a dry run on it gets furthest.
std::string_view LargestCard() {
  std::string_view largest = "b200";
  uint64_t most = 0;
  for (const catalogue::Gpu& gpu : catalogue::Gpus()) {
    const auto totals = catalogue::TotalsOf(gpu);
    if (!totals || totals->cuda_bytes <= most) continue;
    most = totals->cuda_bytes;
    largest = gpu.id;
  }
  return largest;
}

}  // namespace

std::string CommandsForWholeRun(const report::v1::Report& report) {
  const report::v1::DeviceReport* device = InTrouble(report);
  if (device == nullptr || device->block_allocations() == 0) return {};
  if (!device->has_out_of_memory() || report.steps().completed() >= 2) return {};
  const std::vector<std::string> words(report.program().arguments().begin(),
                                       report.program().arguments().end());
  return fmt::format(
      "    vramtrace dry-run --gpu {} -o whole.vtrace -- {}\n"
      "    vramtrace forecast whole.vtrace\n",
      LargestCard(), words.empty() ? "python train.py" : symbolize::Printable(launch::ShellQuote(words)));
}

std::string Advise(report::BuiltReport* built) {
  report::v1::Report* report = &built->report;
  const report::v1::DeviceReport* device = InTrouble(*report);
  if (device == nullptr || device->block_allocations() == 0) return {};
  if (const std::string commands = CommandsForWholeRun(*report); !commands.empty()) {
    return fmt::format(
        "What would make it fit\n"
        "  The run died before two optimizer steps were complete, so nothing here tells what the rest "
        "takes.\n"
        "  Run it on a simulated card that is large enough, then ask:\n{}",
        commands);
  }
  if (report->steps().completed() < 2) return {};
  forecast::StreamOptions options;
  options.device = device->device();
  trace::Result<forecast::Stream> stream =
      forecast::BuildStream(built->file, built->tables, built->stacks, *built->scan, options);
  if (!stream.ok()) return {};
  const auto planner = forecast::Planner::Make({std::move(stream.value())});
  if (!planner.ok()) return {};
  *report->mutable_advice() = report::MakeForecast(*planner.value(), {built->file->path()}, {});
  return report::AdviceText(report->advice());
}

}  // namespace vramtrace::cli
