#include "analyzer/report/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "analyzer/report/table.h"
#include "analyzer/report/units.h"

namespace vramtrace::report {
namespace {

using enum Table::Align;

uint64_t PeakOf(const v1::DeviceReport& device) {
  if (device.has_peak_used() && device.peak_used().bytes() > 0) return device.peak_used().bytes();
  return std::max(device.peak_reserved().bytes(), device.peak_allocated().bytes());
}

uint64_t PeakOf(const v1::Report& report) {
  uint64_t peak = 0;
  for (const v1::DeviceReport& device : report.devices()) peak = std::max(peak, PeakOf(device));
  return peak;
}

bool RanOut(const v1::Report& report) {
  return std::any_of(report.devices().begin(), report.devices().end(),
                     [](const v1::DeviceReport& device) { return device.has_at_refusal(); });
}

// Ranks are numbers of processes only where a launcher has given each its own.
bool HasRanks(std::span<const v1::Report> reports) {
  std::vector<uint32_t> ranks;
  for (const v1::Report& report : reports) {
    if (report.program().world_size() < 2) return false;
    ranks.push_back(report.program().rank());
  }
  std::sort(ranks.begin(), ranks.end());
  return std::adjacent_find(ranks.begin(), ranks.end()) == ranks.end();
}

std::string NameOf(const v1::Report& report, bool ranks) {
  return ranks ? fmt::format("rank {}", report.program().rank())
               : fmt::format("process {}", report.program().pid());
}

std::string PeakText(const v1::Peak& peak) { return peak.bytes() == 0 ? "-" : Size(peak.bytes()); }

std::string Ending(const v1::Report& report, const v1::DeviceReport& device) {
  if (device.has_at_refusal()) return "out of memory";
  if (report.trace().being_written()) return "still running";
  return report.trace().complete() ? "ended" : "killed, or left by _exit";
}

}  // namespace

size_t MostTelling(std::span<const v1::Report> reports) {
  const auto out = std::find_if(reports.begin(), reports.end(), RanOut);
  const auto chosen =
      out != reports.end()
          ? out
          : std::max_element(reports.begin(), reports.end(),
                             [](const v1::Report& a, const v1::Report& b) { return PeakOf(a) < PeakOf(b); });
  return static_cast<size_t>(chosen - reports.begin());
}

std::string RunText(std::span<const v1::Report> reports) {
  const bool ranks = HasRanks(reports);
  std::vector<const v1::Report*> rows;
  for (const v1::Report& report : reports) rows.push_back(&report);
  std::stable_sort(rows.begin(), rows.end(), [ranks](const v1::Report* a, const v1::Report* b) {
    return ranks ? a->program().rank() < b->program().rank() : a->program().pid() < b->program().pid();
  });
  Table table({kLeft, kLeft, kRight, kRight, kRight, kRight, kLeft});
  table.Add({"", "", "steps", "peak allocated", "reserved", "device used", ""});
  for (const v1::Report* report : rows) {
    const std::string steps = Grouped(report->steps().completed());
    if (report->devices().empty()) {
      table.Add({NameOf(*report, ranks), "-", steps, "-", "-", "-", "allocated nothing"});
    }
    for (const v1::DeviceReport& device : report->devices()) {
      table.Add({NameOf(*report, ranks), fmt::format("GPU {}", device.device()), steps,
                 PeakText(device.peak_allocated()), PeakText(device.peak_reserved()),
                 PeakText(device.peak_used()), Ending(*report, device)});
    }
  }
  return fmt::format("A run of {} processes\n{}", reports.size(), table.Render());
}

std::string WhyThisOne(std::span<const v1::Report> reports, size_t chosen) {
  std::string name = NameOf(reports[chosen], HasRanks(reports));
  name.front() = static_cast<char>(name.front() - 'a' + 'A');
  return name + (RanOut(reports[chosen]) ? " ran out of memory:" : " has the highest peak:");
}

}  // namespace vramtrace::report
