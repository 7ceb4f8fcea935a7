#include "analyzer/report/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>
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

// When the report's process ran out, comparable between those of one host; UINT64_MAX: it did not.
uint64_t RanOutAt(const v1::Report& report) {
  uint64_t first = UINT64_MAX;
  for (const v1::DeviceReport& device : report.devices()) {
    if (!device.has_at_refusal()) continue;
    first = std::min(first, report.trace().first_event_ns() + device.at_refusal().moment().time_ns());
  }
  return first;
}

bool OneHost(std::span<const v1::Report> reports) {
  return std::all_of(reports.begin(), reports.end(), [&](const v1::Report& report) {
    return report.program().host() == reports.front().program().host();
  });
}

std::string Capital(std::string name) {
  name.front() = static_cast<char>(name.front() - 'a' + 'A');
  return name;
}

// "Rank 1 ran out of memory first, rank 0 0.412 s later."
std::string FailuresText(std::span<const v1::Report> reports, bool ranks) {
  std::vector<const v1::Report*> failed;
  for (const v1::Report& report : reports) {
    if (RanOutAt(report) != UINT64_MAX) failed.push_back(&report);
  }
  if (failed.empty()) return {};
  const auto seconds = [](uint64_t ns) { return static_cast<double>(ns) / 1e9; };
  if (failed.size() > 1 && !OneHost(reports)) {
    return fmt::format(
        "{} processes ran out of memory; which was first is not known: their hosts' clocks differ.\n",
        failed.size());
  }
  std::stable_sort(failed.begin(), failed.end(),
                   [](const v1::Report* a, const v1::Report* b) { return RanOutAt(*a) < RanOutAt(*b); });
  std::string text = Capital(NameOf(*failed.front(), ranks)) + " ran out of memory";
  text += failed.size() == 1 ? "; no other did" : " first";
  for (size_t i = 1; i < failed.size(); ++i) {
    text += fmt::format(", {} {:.3f} s later", NameOf(*failed[i], ranks),
                        seconds(RanOutAt(*failed[i]) - RanOutAt(*failed.front())));
  }
  return text + ".\n";
}

// The device that allocated most; nullptr: none allocated.
const v1::DeviceReport* FullestOf(const v1::Report& report) {
  const v1::DeviceReport* fullest = nullptr;
  for (const v1::DeviceReport& device : report.devices()) {
    const uint64_t bytes = device.peak_allocated().bytes();
    if (bytes > (fullest == nullptr ? 0 : fullest->peak_allocated().bytes())) fullest = &device;
  }
  return fullest;
}

uint64_t ClassBytes(const v1::Breakdown& breakdown, const std::string& key) {
  for (const v1::ClassRow& row : breakdown.classes()) {
    if (row.key() == key) return row.bytes();
  }
  return 0;
}

// "gradients +1.20 GiB, activations -12.0 MiB": what the fuller holds more, at most three classes.
std::string ClassesApart(const v1::Breakdown& more, const v1::Breakdown& less) {
  std::vector<std::pair<int64_t, std::string>> changes;
  for (const v1::Breakdown* side : {&more, &less}) {
    for (const v1::ClassRow& row : side->classes()) {
      if (side == &less && ClassBytes(more, row.key()) != 0) continue;
      const uint64_t a = ClassBytes(more, row.key());
      const uint64_t b = ClassBytes(less, row.key());
      if (a != b) changes.emplace_back(static_cast<int64_t>(a - b), row.words());
    }
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const auto& a, const auto& b) { return std::llabs(a.first) > std::llabs(b.first); });
  constexpr size_t kMost = 3;
  if (changes.size() > kMost) changes.resize(kMost);
  std::string text;
  for (const auto& [bytes, words] : changes) {
    text +=
        fmt::format("{}{} {}{}", text.empty() ? "" : ", ", words, bytes > 0 ? "+" : "", SignedSize(bytes));
  }
  return text;
}

// How much more the fullest allocates than the emptiest, and what makes it so; nothing where they are equal.
std::string ImbalanceText(std::span<const v1::Report> reports, bool ranks) {
  struct Side {
    const v1::Report* report = nullptr;
    const v1::DeviceReport* device = nullptr;
    [[nodiscard]] uint64_t bytes() const { return device->peak_allocated().bytes(); }
  };
  std::vector<Side> sides;
  for (const v1::Report& report : reports) {
    if (const v1::DeviceReport* device = FullestOf(report)) sides.push_back({&report, device});
  }
  if (sides.empty()) return {};
  const auto [emptiest, fullest] = std::minmax_element(
      sides.begin(), sides.end(), [](const Side& a, const Side& b) { return a.bytes() < b.bytes(); });
  const uint64_t apart = fullest->bytes() - emptiest->bytes();
  if (apart == 0) return {};
  std::string text = Capital(NameOf(*fullest->report, ranks));
  text += fmt::format(" allocates {} ({}) more at its peak than {}", Size(apart),
                      Share(static_cast<double>(apart), static_cast<double>(emptiest->bytes())),
                      NameOf(*emptiest->report, ranks));
  const std::string classes = ClassesApart(fullest->device->at_peak(), emptiest->device->at_peak());
  constexpr size_t kWidth = 100;
  return Wrap(text + (classes.empty() ? "." : ": " + classes + "."), kWidth, 0) + "\n";
}

}  // namespace

size_t MostTelling(std::span<const v1::Report> reports) {
  const auto first =
      std::min_element(reports.begin(), reports.end(),
                       [](const v1::Report& a, const v1::Report& b) { return RanOutAt(a) < RanOutAt(b); });
  const auto out = RanOut(*first) ? first : reports.end();
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
  return fmt::format("A run of {} processes\n{}{}{}", reports.size(), table.Render(),
                     FailuresText(reports, ranks), ImbalanceText(reports, ranks));
}

std::string WhyThisOne(std::span<const v1::Report> reports, size_t chosen) {
  return Capital(NameOf(reports[chosen], HasRanks(reports))) +
         (RanOut(reports[chosen]) ? " ran out of memory:" : " has the highest peak:");
}

}  // namespace vramtrace::report
