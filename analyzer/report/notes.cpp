#include "analyzer/report/notes.h"

#include <fmt/format.h>

#include "analyzer/report/units.h"
#include "analyzer/symbolize/names.h"

namespace vramtrace::report {
namespace {

using trace::Severity;
using trace::Statistic;

std::string_view SeverityName(Severity severity) {
  switch (severity) {
    case Severity::kInformation:
      return "information";
    case Severity::kLoss:
      return "loss";
    case Severity::kDamage:
      return "damage";
  }
  return "?";
}

class NoteWriter {
 public:
  explicit NoteWriter(v1::Report* report) : report_(report) {}

  void Add(Severity severity, std::string_view key, std::string text) {
    v1::Note* note = report_->add_notes();
    note->set_severity(std::string(SeverityName(severity)));
    note->set_key(std::string(key));
    note->set_text(std::move(text));
  }

 private:
  v1::Report* report_;
};

void AddLoadNotes(const trace::LoadStatistics& statistics, const v1::Report& report, NoteWriter* notes) {
  for (size_t i = 0; i < trace::kStatisticCount; ++i) {
    const auto statistic = static_cast<Statistic>(i);
    if (statistics.Get(statistic).count == 0) continue;
    if (statistic == Statistic::kNoTrailer && report.trace().being_written()) {
      notes->Add(Severity::kInformation, "BeingWritten",
                 "The trace is still being written: this is what it held a moment ago.");
      continue;
    }
    notes->Add(trace::SeverityOf(statistic), trace::NameOf(statistic), statistics.Sentence(statistic));
  }
}

std::string_view LossWords(vramtrace::v1::Loss::Reason reason) {
  using Loss = vramtrace::v1::Loss;
  switch (reason) {
    case Loss::REASON_DISK_FULL:
      return "the disk was full";
    case Loss::REASON_CHUNK:
      return "no room in the trace file could be had";
    case Loss::REASON_TABLE_FULL:
      return "a table of names reached its limit";
    case Loss::REASON_STACK_TOO_DEEP:
      return "stacks were deeper than is kept";
    case Loss::REASON_STOPPED:
      return "recording was switched off";
    default:
      return "the reason was not recorded";
  }
}

void AddRecorderNotes(const model::Tables& tables, NoteWriter* notes) {
  for (const vramtrace::v1::Loss& loss : tables.losses) {
    std::string text =
        fmt::format("The recorder lost {} events: {}", Grouped(loss.events()), LossWords(loss.reason()));
    if (!loss.text().empty()) text += fmt::format(" ({})", symbolize::Printable(loss.text()));
    notes->Add(Severity::kLoss, "Loss", text + ".");
  }
  if (tables.has_trailer && tables.trailer.lost_events() > 0 && tables.losses.empty()) {
    notes->Add(Severity::kLoss, "Loss",
               fmt::format("The recorder counted {} lost events.", Grouped(tables.trailer.lost_events())));
  }
  for (const auto& [name, feature] : tables.features) {
    if (feature.on()) continue;
    std::string text = fmt::format("The recorder ran without {}", symbolize::Printable(name));
    if (!feature.reason().empty()) text += fmt::format(": {}", symbolize::Printable(feature.reason()));
    notes->Add(Severity::kLoss, "Feature", text + ".");
  }
}

void AddCounterNote(uint32_t device, const timeline::CounterCheck& check, NoteWriter* notes) {
  if (check.allocated_differences > 0) {
    notes->Add(
        Severity::kLoss, "AllocatedDiffers",
        fmt::format("GPU {}: PyTorch's own counter of allocated bytes differs from the recorded blocks by up "
                    "to {} B, in {} of {} comparisons; first at event {}.",
                    device, SignedGrouped(check.largest_allocated_difference),
                    Grouped(check.allocated_differences), Grouped(check.comparisons), check.first_sequence));
  }
  if (check.reserved_differences > 0) {
    notes->Add(Severity::kLoss, "ReservedDiffers",
               fmt::format(
                   "GPU {}: PyTorch's own counter of reserved bytes differs from the recorded segments by up "
                   "to {} B, in {} of {} comparisons.",
                   device, SignedGrouped(check.largest_reserved_difference),
                   Grouped(check.reserved_differences), Grouped(check.comparisons)));
  }
}

void AddContradictions(uint32_t device, const timeline::Contradictions& found, NoteWriter* notes) {
  const auto add = [&](uint64_t count, std::string_view what, std::string_view consequence) {
    if (count == 0) return;
    notes->Add(Severity::kLoss, "Contradiction",
               fmt::format("GPU {}: {}: {}.", device, Count(count, what), consequence));
  };
  add(found.free_without_allocation, "free", "the block's allocation is not in the trace");
  add(found.allocation_over_live, "allocation", "its address was still in use, so a free is missing");
  add(found.free_size_differs, "free", "the block had another size");
  add(found.driver_free_unknown, "driver free", "what it freed is not in the trace");
}

void AddDeviceNotes(uint32_t index, const timeline::DeviceScan& device, NoteWriter* notes) {
  AddCounterNote(index, device.counters, notes);
  AddContradictions(index, device.contradictions, notes);
  if (device.blocks_without_request > 0) {
    notes->Add(
        Severity::kInformation, "NoRequestedSizes",
        fmt::format(
            "GPU {}: of {} of {} allocations the requested size is not known; their whole block counts "
            "as the tensor.",
            index, Grouped(device.blocks_without_request), Grouped(device.block_allocations)));
  }
  if (device.managed_peak > 0) {
    notes->Add(
        Severity::kInformation, "ManagedMemory",
        fmt::format(
            "GPU {}: managed memory reached {}. Its pages are where they were touched last, so it is in no "
            "sum here.",
            index, Size(device.managed_peak)));
  }
  if (device.dropped_peak > 0) {
    notes->Add(Severity::kLoss, "PeakLeftOut",
               fmt::format("GPU {}: step {} reached {} allocated, more than any step whose events are in the "
                           "trace: the peak that is explained is not the highest. Raise VRAMTRACE_MAX_SIZE.",
                           index, Grouped(device.dropped_peak_step), Size(device.dropped_peak)));
  }
  const bool ended = device.EndedOutOfMemory();
  const uint64_t survived = device.refusal_count - (ended ? 1 : 0);
  if (survived > 0) {
    notes->Add(Severity::kInformation, "SurvivedOutOfMemory",
               fmt::format("GPU {}: {} out-of-memory errors were caught and the program went on.", index,
                           Grouped(survived)));
  }
}

}  // namespace

namespace {

void AddRetentionNote(const model::Tables& tables, const timeline::Scan& scan, NoteWriter* notes) {
  if (tables.dropped.empty()) return;
  uint64_t steps = 0;
  for (const model::DroppedRow& row : tables.dropped) steps += row.steps;
  if (steps == 0) return;
  notes->Add(
      Severity::kInformation, "SummarizedSteps",
      fmt::format("Of {} steps {} are in the trace in full and {} as a summary each (peak, least, "
                  "reserved, events, retries).",
                  Grouped(scan.completed_steps),
                  Grouped(scan.completed_steps - std::min(steps, scan.completed_steps)), Grouped(steps)));
}

}  // namespace

void AddNotes(const trace::TraceFile& file, const model::Tables& tables, const timeline::Scan& scan,
              v1::Report* report) {
  NoteWriter notes(report);
  AddLoadNotes(file.statistics(), *report, &notes);
  AddRetentionNote(tables, scan, &notes);
  AddRecorderNotes(tables, &notes);
  for (const auto& [index, device] : scan.devices) AddDeviceNotes(index, device, &notes);
  constexpr uint64_t kWorthSaying = 1024 * 1024;
  if (scan.host.peak >= kWorthSaying) {
    notes.Add(Severity::kInformation, "HostMemory",
              fmt::format("Pinned host memory reached {} (not device memory).", Size(scan.host.peak)));
  }
  if (scan.host.refused > 0) {
    notes.Add(Severity::kInformation, "HostRefused",
              fmt::format("{} requests for pinned host memory were refused.", Grouped(scan.host.refused)));
  }
}

}  // namespace vramtrace::report
