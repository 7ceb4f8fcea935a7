#include "analyzer/viewer_data/build.h"

#include <algorithm>
#include <optional>

#include "analyzer/report/json.h"
#include "analyzer/timeline/scan.h"
#include "analyzer/viewer_data/curve_pass.h"
#include "analyzer/viewer_data/rows.h"

namespace vramtrace::viewer_data {
namespace {

using nlohmann::ordered_json;
using report::v1::DeviceReport;
using report::v1::Report;

std::vector<Mark> MarksOf(const Report& report) {
  std::vector<Mark> marks;
  for (const DeviceReport& device : report.devices()) {
    const auto add = [&](std::string kind, const report::v1::Moment& moment) {
      marks.push_back({device.device(), std::move(kind), moment.sequence()});
    };
    // Where blocks are not PyTorch's, the instant that the report explains is another peak than this one.
    if (device.has_at_peak()) add("peak", device.at_peak().moment());
    if (device.peak_reserved().bytes() > 0) add("peak_reserved", device.peak_reserved().moment());
    if (device.has_peak_used()) add("peak_used", device.peak_used().moment());
    if (device.has_out_of_memory()) add("out_of_memory", device.out_of_memory().moment());
  }
  return marks;
}

// The instants whose live sets a long trace keeps, ascending.
class Keyframes {
 public:
  // Local peaks a device; with what the report speaks of, this bounds how much is written.
  static constexpr size_t kParts = 24;

  void Add(Tick tick) {
    if (tick != kNever) ticks_.push_back(tick);
  }
  void Sort() {
    std::sort(ticks_.begin(), ticks_.end());
    ticks_.erase(std::unique(ticks_.begin(), ticks_.end()), ticks_.end());
  }
  [[nodiscard]] bool Sees(const attribution::Life& life) const {
    const auto first = std::lower_bound(ticks_.begin(), ticks_.end(), life.allocated);
    return first != ticks_.end() && *first < life.freed;
  }
  [[nodiscard]] const std::vector<Tick>& ticks() const { return ticks_; }

 private:
  std::vector<Tick> ticks_;
};

ordered_json ClassList() {
  ordered_json classes = ordered_json::array();
  for (size_t i = 0; i < attribution::kMemoryClassCount; ++i) {
    const auto memory_class = static_cast<attribution::MemoryClass>(i);
    classes.push_back({{"key", attribution::KeyOf(memory_class)},
                       {"words", attribution::WordsOf(memory_class)},
                       {"meaning", attribution::MeaningOf(memory_class)}});
  }
  // Band kBands - 1 of the curves.
  classes.push_back({{"key", "rounding"},
                     {"words", "allocator rounding"},
                     {"meaning", "block sizes less requested sizes"}});
  return classes;
}

ordered_json PhaseList() {
  ordered_json phases = ordered_json::array();
  for (size_t i = 0; i <= static_cast<size_t>(model::Phase::kScript); ++i) {
    phases.push_back(model::PhaseName(static_cast<model::Phase>(i)));
  }
  return phases;
}

ordered_json ConfidenceList() {
  return {attribution::NameOf(attribution::Confidence::kLow),
          attribution::NameOf(attribution::Confidence::kMedium),
          attribution::NameOf(attribution::Confidence::kHigh)};
}

class Builder {
 public:
  Builder(std::shared_ptr<trace::TraceFile> file, const DataOptions& options, ViewerData* out)
      : file_(std::move(file)), options_(options), out_(out) {}

  void Run() {
    tables_ = model::ReadTables(*file_);
    stacks_ = std::make_shared<model::StackTable>(*tables_);
    scan_ = timeline::ScanTrace(file_, tables_, stacks_);
    marks_ = MarksOf(out_->report.report);
    uint64_t blocks = 0;
    for (const auto& [index, device] : scan_.devices) blocks += device.block_allocations;
    out_->complete = blocks <= options_.blocks;
    if (!out_->complete) ChooseKeyframes();

    Strings strings;
    UsedStacks stacks(*tables_, &strings);
    Rows rows(&stacks, &strings);
    std::vector<uint8_t> classes(blocks, static_cast<uint8_t>(attribution::MemoryClass::kUnknown));
    attribution::ForEachLife(file_, tables_, stacks_, scan_, [&](const attribution::Life& life) {
      if (life.ordinal < classes.size()) {
        classes[life.ordinal] = static_cast<uint8_t>(life.explained.verdict.memory_class);
      }
      if (out_->complete || keyframes_.Sees(life)) rows.Add(life);
    });
    out_->blocks = rows.size();

    CurvePass curves(tables_, stacks_, scan_.first_time_ns, classes);
    curves.Run(file_, &marks_);
    Columns columns;
    rows.Write(&columns);
    stacks.Write(&columns);
    curves.segments().Write(*tables_, curves.devices(), &strings, &columns);
    for (const auto& [index, curve] : curves.curves()) {
      curve.Write("curve" + std::to_string(index) + ".", &columns);
    }
    out_->file = columns.Finish(Header(curves, strings));
  }

 private:
  void ChooseKeyframes() {
    const std::vector<uint8_t> no_classes;  // kept by reference
    CurvePass shape(tables_, stacks_, scan_.first_time_ns, no_classes);
    shape.Run(file_, &marks_);
    for (const Mark& mark : marks_) keyframes_.Add(mark.tick);
    for (const auto& [index, curve] : shape.curves()) {
      for (const Tick tick : curve.LocalPeaks(Keyframes::kParts)) keyframes_.Add(tick);
    }
    keyframes_.Sort();
  }

  [[nodiscard]] ordered_json Header(const CurvePass& curves, const Strings& strings) const {
    ordered_json marks = ordered_json::array();
    for (const Mark& mark : marks_) {
      if (mark.tick == kNever) continue;
      marks.push_back({{"device", mark.device}, {"kind", mark.kind}, {"tick", mark.tick}});
    }
    ordered_json devices = ordered_json::array();
    for (const auto& [index, curve] : curves.curves()) devices.push_back(index);
    return {{"version", 1},
            {"complete", out_->complete},
            {"ticks", curves.ticks()},
            {"keyframes", keyframes_.ticks()},
            {"devices", std::move(devices)},
            {"marks", std::move(marks)},
            {"classes", ClassList()},
            {"phases", PhaseList()},
            {"confidences", ConfidenceList()},
            {"damaged", out_->report.damaged},
            {"report", report::ToJson(out_->report.report)},
            {"strings", strings.texts()}};
  }

  std::shared_ptr<trace::TraceFile> file_;
  DataOptions options_;
  ViewerData* out_;
  std::shared_ptr<const model::Tables> tables_;
  std::shared_ptr<const model::StackTable> stacks_;
  timeline::Scan scan_;
  std::vector<Mark> marks_;
  Keyframes keyframes_;
};

}  // namespace

trace::Result<ViewerData> BuildViewerData(const std::string& path, const DataOptions& options) {
  // The table of blocks says more than the report's list, of which one row is the least that can be asked
  // for.
  trace::Result<report::BuiltReport> report = report::BuildReport(path, {.allocations = 1});
  if (!report.ok()) return report.error();
  trace::Result<std::shared_ptr<trace::TraceFile>> file = trace::TraceFile::Open(path);
  if (!file.ok()) return file.error();
  ViewerData data;
  data.report = std::move(report.value());
  Builder(file.value(), options, &data).Run();
  return data;
}

}  // namespace vramtrace::viewer_data
