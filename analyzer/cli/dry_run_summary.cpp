#include "analyzer/cli/dry_run_summary.h"

#include <nlohmann/json.hpp>
#include <variant>

namespace vramtrace::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string_view NameOf(DryRunVerdict::Fit fit) {
  switch (fit) {
    case DryRunVerdict::Fit::kFits:
      return "fits";
    case DryRunVerdict::Fit::kTooClose:
      return "too_close";
    case DryRunVerdict::Fit::kDoesNotFit:
      return "does_not_fit";
    case DryRunVerdict::Fit::kUnknown:
      break;
  }
  return "unknown";
}

// In the order of launch::Stop's alternatives.
std::string_view NameOf(const launch::Stop& stop) {
  constexpr std::string_view kNames[] = {"time_out", "overwrite", "host_memory", "left_running"};
  static_assert(std::size(kNames) == std::variant_size_v<launch::Stop>);
  return kNames[stop.index()];
}

Json DevicesOf(const DryRunFacts& facts, const DryRunVerdict& verdict) {
  Json devices = Json::array();
  for (const auto& [index, use] : verdict.devices) {
    const launch::SimulatedDevice& device = use.worst;
    devices.push_back({{"index", index},
                       {"total_bytes", device.total_bytes},
                       {"peak_used_bytes", device.peak_used_bytes},
                       {"high_estimate_bytes", HighEstimate(facts, device)},
                       {"context_bytes", device.context_bytes},
                       {"processes", use.processes},
                       {"processes_together_bytes", use.together},
                       {"refused_allocations", use.refused},
                       {"largest_refused_bytes", device.largest_refused_bytes}});
  }
  return devices;
}

Json InventedOf(const DryRunFacts& facts) {
  Json invented = Json::array();
  for (const auto& process : facts.processes) {
    for (const auto& read : process.invented) {
      invented.push_back(
          {{"effect", read.effect}, {"where", read.where}, {"what", read.what}, {"reads", read.reads}});
    }
  }
  return invented;
}

}  // namespace

Json Summarise(std::string_view gpu_id, const DryRunFacts& facts, const DryRunVerdict& verdict) {
  Json summary{{"exit_code", verdict.exit_code},       {"program_exit_code", facts.exit_code},
               {"verdict", NameOf(verdict.fit)},       {"gpu", gpu_id},
               {"device_name", facts.gpu_name},        {"total_basis", facts.total_basis},
               {"context_basis", facts.context_basis}, {"devices", DevicesOf(facts, verdict)}};
  if (facts.trace && facts.trace->peak_reserved > 0) {
    summary["pytorch"] = {{"steps", facts.trace->steps},
                          {"peak_allocated_bytes", facts.trace->peak_allocated},
                          {"peak_reserved_bytes", facts.trace->peak_reserved}};
  }
  if (facts.budget_bytes) {
    summary["budget_bytes"] = *facts.budget_bytes;
    summary["over_budget"] = verdict.over_budget;
  }
  if (facts.stop) summary["stopped"] = NameOf(*facts.stop);
  summary["invented_reads"] = InventedOf(facts);
  summary["lines"] = verdict.lines;
  return summary;
}

}  // namespace vramtrace::cli
