#include "analyzer/report/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

namespace vramtrace::report {
namespace {

const v1::DeviceReport* Fullest(const v1::Report& report) {
  const v1::DeviceReport* fullest = nullptr;
  for (const v1::DeviceReport& device : report.devices()) {
    if (fullest == nullptr || device.peak_allocated().bytes() > fullest->peak_allocated().bytes())
      fullest = &device;
  }
  return fullest;
}

// The live set that the report explains.
const v1::Breakdown& LiveSet(const v1::DeviceReport& device) {
  if (device.has_at_instant()) return device.at_instant();
  return device.has_at_refusal() ? device.at_refusal() : device.at_peak();
}

void FillSide(const v1::Report& report, const v1::DeviceReport& device, v1::DiffSide* side) {
  side->set_trace(report.trace().path());
  side->set_device(device.device());
  side->set_name(device.name());
  side->set_allocated(device.peak_allocated().bytes());
  side->set_reserved(device.peak_reserved().bytes());
  side->set_used(device.peak_used().bytes());
  side->set_at_refusal(device.has_at_refusal());
  if (device.has_at_instant()) {
    side->set_allocated(device.at_instant().allocated());
    side->set_reserved(device.at_instant().reserved());
    side->set_used(device.at_instant().identity().device_used());
    side->set_at_refusal(false);
    side->set_instant(device.instant());
  }
  *side->mutable_moment() = LiveSet(device).moment();
}

std::string InputsText(const v1::Report& report) {
  std::string text;
  for (const v1::Input& input : report.steps().inputs()) {
    text += fmt::format("{}{} [{}] {}", text.empty() ? "" : ", ", input.name(),
                        fmt::join(input.shape(), ", "), input.dtype());
  }
  return text;
}

std::string Joined(const google::protobuf::RepeatedPtrField<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

// Bytes of tensors of each dtype among the weights: "float32 475 MiB" against "bfloat16 238 MiB" says more
// than a size alone.
std::string WeightTypes(const v1::Breakdown& live) {
  std::map<std::string, uint64_t> bytes;
  for (const v1::Allocation& allocation : live.allocations()) {
    if (allocation.class_() == "weight" && !allocation.dtype().empty())
      bytes[allocation.dtype()] += allocation.bytes();
  }
  std::string text;
  for (const auto& entry : bytes) text += (text.empty() ? "" : ", ") + entry.first;
  return text;
}

class Rows {
 public:
  void Add(bool of_b, const std::string& name, uint64_t bytes) {
    v1::DiffRow& row = rows_[name];
    row.set_name(name);
    if (of_b) {
      row.set_b(row.b() + bytes);
      row.set_blocks_b(row.blocks_b() + 1);
    } else {
      row.set_a(row.a() + bytes);
      row.set_blocks_a(row.blocks_a() + 1);
    }
  }
  void Write(google::protobuf::RepeatedPtrField<v1::DiffRow>* out) {
    for (auto& [name, row] : rows_) {
      row.set_change(static_cast<int64_t>(row.b()) - static_cast<int64_t>(row.a()));
      *out->Add() = row;
    }
    std::stable_sort(out->begin(), out->end(), [](const v1::DiffRow& a, const v1::DiffRow& b) {
      return std::llabs(a.change()) > std::llabs(b.change());
    });
  }

 private:
  std::map<std::string, v1::DiffRow> rows_;
};

void AddReasons(const v1::Report& a, const v1::DeviceReport& device_a, const v1::Report& b,
                const v1::DeviceReport& device_b, v1::Diff* diff) {
  const auto add = [&](const char* what, const std::string& of_a, const std::string& of_b) {
    if (of_a == of_b) return;
    v1::DiffReason* reason = diff->add_reasons();
    reason->set_what(what);
    reason->set_a(of_a);
    reason->set_b(of_b);
  };
  const auto batch = [](const v1::Report& report) {
    return report.steps().batch() == 0 ? std::string("not known") : std::to_string(report.steps().batch());
  };
  add("batch", batch(a), batch(b));
  add("inputs", InputsText(a), InputsText(b));
  add("weights", WeightTypes(LiveSet(device_a)), WeightTypes(LiveSet(device_b)));
  add("optimizer", Joined(a.steps().optimizers()), Joined(b.steps().optimizers()));
  add("PyTorch", a.program().torch_version(), b.program().torch_version());
  add("device", device_a.name(), device_b.name());
  add("command", Joined(a.program().arguments()), Joined(b.program().arguments()));
}

}  // namespace

std::string FoldPath(const std::string& path) {
  std::string folded;
  size_t begin = 0;
  while (begin <= path.size()) {
    size_t end = path.find('.', begin);
    if (end == std::string::npos) end = path.size();
    const std::string_view part = std::string_view(path).substr(begin, end - begin);
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
    if (begin > 0) folded += '.';
    folded += number ? std::string_view("*") : part;
    begin = end + 1;
  }
  return folded;
}

void FillTraffic(const timeline::Traffic& traffic, v1::Traffic* out) {
  out->set_allocated_blocks(traffic.allocated_blocks);
  out->set_allocated_bytes(traffic.allocated_bytes);
  out->set_freed_blocks(traffic.freed_blocks);
  out->set_freed_bytes(traffic.freed_bytes);
  out->set_kept_blocks(traffic.kept_blocks);
  out->set_kept_bytes(traffic.kept_bytes);
}

v1::Diff MakeDiff(const v1::Report& a, const v1::Report& b) {
  v1::Diff diff;
  diff.set_schema(1);
  diff.set_vramtrace_version(VRAMTRACE_VERSION);
  const v1::DeviceReport* device_a = Fullest(a);
  const v1::DeviceReport* device_b = Fullest(b);
  if (device_a == nullptr || device_b == nullptr) return diff;
  FillSide(a, *device_a, diff.mutable_a());
  FillSide(b, *device_b, diff.mutable_b());
  AddReasons(a, *device_a, b, *device_b, &diff);
  Rows classes;
  Rows modules;
  Rows sites;
  for (const bool of_b : {false, true}) {
    for (const v1::Allocation& allocation : LiveSet(of_b ? *device_b : *device_a).allocations()) {
      classes.Add(of_b, allocation.class_(), allocation.bytes());
      const std::string owner = !allocation.names().empty() && !allocation.has_module()
                                    ? allocation.names(0).substr(0, allocation.names(0).rfind('.'))
                                    : allocation.module_path();
      modules.Add(of_b, owner.empty() ? "(root module and script)" : FoldPath(owner), allocation.bytes());
      sites.Add(of_b, allocation.site().empty() ? "(no Python frame)" : allocation.site(),
                allocation.bytes());
    }
  }
  classes.Write(diff.mutable_classes());
  modules.Write(diff.mutable_modules());
  sites.Write(diff.mutable_sites());
  for (const v1::Report* report : {&a, &b}) {
    for (const v1::Note& note : report->notes()) {
      if (note.severity() == "information") continue;
      v1::Note* own = diff.add_notes();
      *own = note;
      own->set_text(report->trace().path() + ": " + note.text());
    }
  }
  return diff;
}

}  // namespace vramtrace::report
