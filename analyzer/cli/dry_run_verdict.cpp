#include "analyzer/cli/dry_run_verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyzer/cli/launch/status.h"
#include "analyzer/cli/launch/units.h"
#include "analyzer/forecast/bands.h"
#include "analyzer/report/units.h"

namespace vramtrace::cli {
namespace {

using launch::SimulatedDevice;
using report::Size;

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

std::map<int, DeviceUse> UseByDevice(const std::vector<launch::SimulatedProcess>& processes) {
  std::map<int, DeviceUse> uses;
  for (const auto& process : processes) {
    for (const SimulatedDevice& device : process.devices) {
      DeviceUse& use = uses[device.index];
      const uint64_t largest_refused =
          std::max(use.worst.largest_refused_bytes, device.largest_refused_bytes);
      if (use.processes == 0 || device.peak_used_bytes > use.worst.peak_used_bytes) use.worst = device;
      use.worst.largest_refused_bytes = largest_refused;
      use.together += device.peak_used_bytes;
      use.refused += device.refused_allocations;
      ++use.processes;
    }
  }
  return uses;
}

void DescribeUse(const DryRunFacts& facts, const std::map<int, DeviceUse>& uses, DryRunVerdict* verdict) {
  for (const auto& [index, use] : uses) {
    const std::string name =
        uses.size() == 1 ? facts.gpu_name : fmt::format("{} (device {})", facts.gpu_name, index);
    verdict->lines.push_back(fmt::format("{}: peak device used {} of {} ({}), {} of it the context ({})",
                                         name, Size(use.worst.peak_used_bytes), Size(use.worst.total_bytes),
                                         facts.total_basis, Size(use.worst.context_bytes),
                                         facts.context_basis));
    if (use.processes > 1) {
      verdict->lines.push_back(fmt::format(
          "{} processes used this device, each alone here; at once on one card they would need up to {}",
          use.processes, Size(use.together)));
    }
  }
}

DryRunVerdict::Fit FitOf(const DryRunFacts& facts, const DeviceUse& use) {
  const SimulatedDevice& device = use.worst;
  if (use.refused > 0 && facts.exit_code != 0) return DryRunVerdict::Fit::kDoesNotFit;
  if (facts.stop || facts.exit_code != 0) return DryRunVerdict::Fit::kUnknown;
  const uint64_t high = HighEstimate(facts, device);
  return high <= device.total_bytes ? DryRunVerdict::Fit::kFits : DryRunVerdict::Fit::kTooClose;
}

std::string FitLine(const DryRunFacts& facts, const DeviceUse& use, DryRunVerdict::Fit fit) {
  const SimulatedDevice& device = use.worst;
  const uint64_t high = HighEstimate(facts, device);
  switch (fit) {
    case DryRunVerdict::Fit::kDoesNotFit:
      return fmt::format("it does not fit: {} allocation{} refused, the largest of {}", use.refused,
                         use.refused == 1 ? " was" : "s were", Size(device.largest_refused_bytes));
    case DryRunVerdict::Fit::kUnknown:
      return facts.stop
                 ? "no verdict: the run was stopped, the figures are those up to then"
                 : fmt::format(
                       "no verdict: the program ended with status {}, the figures are those up to then",
                       facts.exit_code);
    case DryRunVerdict::Fit::kTooClose:
      return fmt::format("too close to call: {} stay free here, but a real card may need up to {} of its {}",
                         Size(device.total_bytes - device.peak_used_bytes), Size(high),
                         Size(device.total_bytes));
    case DryRunVerdict::Fit::kFits:
      break;
  }
  return fmt::format("it fits at this batch: {} stay free (a real card may need up to {})",
                     Size(device.total_bytes - device.peak_used_bytes), Size(high));
}

void JudgeBudget(uint64_t budget, uint64_t peak, DryRunVerdict* verdict) {
  verdict->over_budget = peak > budget;
  verdict->lines.push_back(
      verdict->over_budget
          ? fmt::format("over budget: {} of device memory were used at the peak, {} more than {}", Size(peak),
                        Size(peak - budget), Size(budget))
          : fmt::format("within budget: {} below {}", Size(budget - peak), Size(budget)));
}

void DescribeTrace(const TraceFacts& trace, DryRunVerdict* verdict) {
  if (trace.peak_reserved == 0) return;  // not PyTorch's caching allocator
  verdict->lines.push_back(fmt::format(
      "PyTorch's peaks: {} allocated, {} reserved; {}", Size(trace.peak_allocated), Size(trace.peak_reserved),
      trace.steps == 0   ? "no whole optimizer step was seen"
      : trace.steps == 1 ? "1 optimizer step was seen"
                         : fmt::format("{} optimizer steps were seen", trace.steps)));
}

// Where the program read what no kernel computed, the most frequent place first.
void DescribeInvented(const std::vector<launch::SimulatedProcess>& processes, std::string_view effect,
                      std::string_view said, DryRunVerdict* verdict) {
  std::vector<const launch::InventedRead*> reads;
  for (const auto& process : processes) {
    for (const auto& read : process.invented) {
      if (read.effect == effect) reads.push_back(&read);
    }
  }
  if (reads.empty()) return;
  std::stable_sort(reads.begin(), reads.end(),
                   [](const auto* a, const auto* b) { return a->reads > b->reads; });
  constexpr size_t kShown = 3;
  std::string places;
  for (size_t i = 0; i < std::min(reads.size(), kShown); ++i) {
    places += fmt::format("{}{} ({})", i == 0 ? "" : ", ", reads[i]->where, reads[i]->what);
  }
  if (reads.size() > kShown) {
    const size_t more = reads.size() - kShown;
    places += fmt::format(" and {} more place{}", more, more == 1 ? "" : "s");
  }
  verdict->lines.push_back(fmt::format("{}: {}", said, places));
}

int ExitCodeOf(const DryRunFacts& facts, bool over_budget) {
  if (facts.stop && std::holds_alternative<launch::TimedOut>(*facts.stop)) return launch::kExitTimeOut;
  if (facts.stop && !std::holds_alternative<launch::LeftRunning>(*facts.stop)) {
    return launch::kExitCheckFailed;
  }
  if (facts.exit_code != 0) return facts.exit_code;
  return over_budget ? launch::kExitCheckFailed : 0;
}

}  // namespace

uint64_t HighEstimate(const DryRunFacts& facts, const launch::SimulatedDevice& device) {
  const bool convolutions = !facts.trace || facts.trace->convolutions;
  const forecast::Band band =
      forecast::BandOf({.basis = forecast::Basis::kRecording, .convolutions = convolutions});
  const uint64_t beyond_context =
      device.peak_used_bytes - std::min(device.peak_used_bytes, device.context_bytes);
  return device.peak_used_bytes +
         static_cast<uint64_t>(std::ceil(static_cast<double>(beyond_context) * band.reserved_high)) +
         static_cast<uint64_t>(band.elsewhere_high);
}

std::vector<std::string> StopLines(const launch::Stop& stop) {
  return std::visit(
      Overloaded{
          [](const launch::TimedOut& out) -> std::vector<std::string> {
            return {fmt::format("stopped: the time-out of {} is over (--timeout)",
                                launch::DurationText(out.after))};
          },
          [](const launch::Overwrite& overwrite) -> std::vector<std::string> {
            return {
                fmt::format("stopped: process {} was about to {}", overwrite.process, overwrite.deed),
                "that file was there before and is unchanged. Give the program an empty output folder, or "
                "run a copy with --in-place, which lets it write"};
          },
          [](const launch::HostMemoryWatch::Shortage& shortage) -> std::vector<std::string> {
            const char* whose = shortage.is_asked         ? "what --host-memory allows"
                                : shortage.is_group_limit ? "what this container's limit leaves"
                                                          : "what this machine has left";
            return {fmt::format("stopped: the program held {} of host memory, {} is {}",
                                Size(shortage.used_bytes), whose, Size(shortage.limit_bytes)),
                    "build the model on the device, where a dry run costs no memory: `with "
                    "torch.device(\"cuda\"): model = ...`, or load it with device_map=\"cuda\""};
          },
          [](const launch::LeftRunning& left) -> std::vector<std::string> {
            return {fmt::format("ended {} process{} that the command left behind", left.processes,
                                left.processes == 1 ? "" : "es")};
          },
      },
      stop);
}

DryRunVerdict Judge(const DryRunFacts& facts) {
  DryRunVerdict verdict;
  if (facts.stop) verdict.lines = StopLines(*facts.stop);
  verdict.devices = UseByDevice(facts.processes);
  const auto& uses = verdict.devices;
  if (uses.empty()) {
    verdict.lines.emplace_back("no verdict: the program did not use the simulated GPU");
    verdict.exit_code = ExitCodeOf(facts, false);
    return verdict;
  }
  verdict.used_device = true;
  DescribeUse(facts, uses, &verdict);
  if (facts.trace) DescribeTrace(*facts.trace, &verdict);
  DescribeInvented(facts.processes, "shape", "memory depends on invented values", &verdict);
  DescribeInvented(facts.processes, "branch", "the program branched on invented values", &verdict);

  const auto fullest = std::max_element(uses.begin(), uses.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second.refused, a.second.worst.peak_used_bytes) <
           std::pair(b.second.refused, b.second.worst.peak_used_bytes);
  });
  verdict.fit = FitOf(facts, fullest->second);
  verdict.lines.push_back(FitLine(facts, fullest->second, verdict.fit));
  if (fullest->second.refused > 0 && verdict.fit != DryRunVerdict::Fit::kDoesNotFit) {
    verdict.lines.push_back(fmt::format("{} allocation{} refused on the way and the program went on",
                                        fullest->second.refused,
                                        fullest->second.refused == 1 ? " was" : "s were"));
  }
  if (facts.budget_bytes) {
    uint64_t peak = 0;
    for (const auto& [index, use] : uses) peak = std::max(peak, use.worst.peak_used_bytes);
    JudgeBudget(*facts.budget_bytes, peak, &verdict);
  }
  verdict.exit_code = ExitCodeOf(facts, verdict.over_budget);
  return verdict;
}

}  // namespace vramtrace::cli
