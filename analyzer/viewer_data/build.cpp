#include "analyzer/viewer_data/build.h"

#include <algorithm>

#include "analyzer/diagnose/diagnose.h"
#include "analyzer/report/json.h"

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

// Local peaks a device; with what the report speaks of, this bounds how much of a long trace is written.
constexpr size_t kLocalPeaks = 24;

}  // namespace

ViewerData::ViewerData(report::BuiltReport built)
    : built_(std::move(built)),
      stacks_(*built_.tables, &strings_),
      kinds_(&stacks_, &strings_),
      observer_(built_.scan->first_time_ns, MarksOf(built_.report)) {
  attribution::ForEachLife(
      built_.file, built_.tables, built_.stacks, *built_.scan,
      [this](const attribution::Life& life) { blocks_.Add(life, kinds_.Id(life)); }, &observer_);
  blocks_.Finish();
  for (auto& [device, curve] : observer_.curves()) blocks_.FillBands(kinds_, device, &curve);
}

trace::Result<std::unique_ptr<ViewerData>> ViewerData::Build(const std::string& path, Diagnoses diagnoses) {
  // The table of blocks says more than the report's list, of which one row is the least that can be asked
  // for.
  trace::Result<report::BuiltReport> report = report::BuildReport(path, {.allocations = 1});
  if (!report.ok()) return report.error();
  report::BuiltReport& built = report.value();
  if (diagnoses != Diagnoses::kNone) {
    diagnose::Diagnose({built.file, built.tables, built.stacks, built.scan},
                       {.predict = diagnoses == Diagnoses::kWithReplays}, &built.report);
  }
  return std::unique_ptr<ViewerData>(new ViewerData(std::move(report.value())));
}

Tick ViewerData::ExplainedTick(uint32_t device) const {
  Tick found = kNever;
  for (const Mark& mark : marks()) {
    if (mark.device != device || mark.tick == kNever) continue;
    if (mark.kind == "out_of_memory") return mark.tick;
    if (mark.kind == "peak") found = mark.tick;
  }
  return found;
}

// The instants whose live sets a long trace keeps, ascending.
std::vector<Tick> ViewerData::Keyframes() const {
  std::vector<Tick> ticks;
  for (const Mark& mark : marks()) {
    if (mark.tick != kNever) ticks.push_back(mark.tick);
  }
  for (const auto& [index, curve] : curves()) {
    for (const Tick tick : curve.LocalPeaks(kLocalPeaks)) ticks.push_back(tick);
  }
  std::sort(ticks.begin(), ticks.end());
  ticks.erase(std::unique(ticks.begin(), ticks.end()), ticks.end());
  return ticks;
}

// Around the marks, ascending and apart from each other.
std::vector<Stretch> ViewerData::Details(Tick around) const {
  std::vector<Tick> ticks;
  for (const Mark& mark : marks()) {
    if (mark.tick != kNever) ticks.push_back(mark.tick);
  }
  std::sort(ticks.begin(), ticks.end());
  std::vector<Stretch> stretches;
  for (const Tick tick : ticks) {
    const Tick from = tick - std::min(tick, around);
    const Tick to = tick + std::min(around, observer_.ticks() - 1 - tick);
    if (!stretches.empty() && from <= stretches.back().to) {
      stretches.back().to = to;
    } else {
      stretches.push_back({from, to});
    }
  }
  return stretches;
}

ordered_json ViewerData::Header(const FileOptions& options, bool complete, const std::vector<Tick>& keyframes,
                                const std::vector<Stretch>& details) const {
  ordered_json detail = ordered_json::array();
  for (const Stretch& stretch : details) detail.push_back({stretch.from, stretch.to});
  ordered_json marked = ordered_json::array();
  for (const Mark& mark : marks()) {
    if (mark.tick == kNever) continue;
    marked.push_back({{"device", mark.device}, {"kind", mark.kind}, {"tick", mark.tick}});
  }
  ordered_json devices = ordered_json::array();
  for (const auto& [index, curve] : curves()) devices.push_back(index);
  const std::string& path = built_.report.trace().path();
  ordered_json forecasts = ordered_json::array();
  for (const report::v1::Forecast& forecast : options.forecasts)
    forecasts.push_back(report::ToJson(forecast));
  return {{"version", 2},
          {"name", options.name.empty() ? path.substr(path.rfind('/') + 1) : options.name},
          {"base", options.base},
          {"served", options.served},
          {"trace_version", options.version},
          {"complete", complete},
          {"ticks", observer_.ticks()},
          {"keyframes", keyframes},
          {"detail", std::move(detail)},
          {"devices", std::move(devices)},
          {"marks", std::move(marked)},
          {"classes", ClassList()},
          {"phases", PhaseList()},
          {"confidences", ConfidenceList()},
          {"damaged", damaged()},
          {"report", report::ToJson(report())},
          {"forecasts", std::move(forecasts)},
          {"whole_run", options.whole_run},
          {"strings", strings_.texts()}};
}

WrittenFile ViewerData::Write(const FileOptions& options) {
  WrittenFile written;
  written.complete = blocks_.size() <= options.blocks;
  const bool whole = written.complete;
  const std::vector<Tick> keyframes = whole ? std::vector<Tick>{} : Keyframes();
  const std::vector<Stretch> details =
      whole || options.served ? std::vector<Stretch>{} : Details(options.detail);
  const auto seen = [&](Tick allocated, Tick freed) {
    const auto first = std::lower_bound(keyframes.begin(), keyframes.end(), allocated);
    if (first != keyframes.end() && *first < freed) return true;
    return std::any_of(details.begin(), details.end(), [&](const Stretch& stretch) {
      return allocated <= stretch.to && freed >= stretch.from;
    });
  };
  Columns columns;
  kinds_.Write(&columns);
  written.blocks = written.complete ? blocks_.Write(nullptr, &columns) : blocks_.Write(seen, &columns);
  stacks_.Write(&columns);
  observer_.segments().Write(*built_.tables, &strings_, &columns);
  observer_.WriteSteps(&columns);
  for (const auto& [index, curve] : curves()) curve.Write("curve" + std::to_string(index) + ".", &columns);
  written.bytes = columns.Finish(Header(options, written.complete, keyframes, details));
  return written;
}

std::string ViewerData::WriteSelection(const Selection& selection) const {
  Columns columns;
  blocks_.Write(blocks_.Select(kinds_, selection), &columns);
  return columns.Finish({{"version", 2}});
}

}  // namespace vramtrace::viewer_data
