#include "analyzer/report/series.h"

#include <algorithm>
#include <cstdlib>

namespace vramtrace::report {

void FillStepRows(const timeline::DeviceScan& scan, uint64_t first_time_ns, v1::DeviceReport* device) {
  const auto since_start = [&](uint64_t time_ns) { return time_ns - std::min(time_ns, first_time_ns); };
  for (size_t i = 0; i < scan.steps.size(); ++i) {
    const timeline::StepRow& step = scan.steps[i];
    v1::StepRow* row = device->add_steps();
    row->set_step(i);
    const uint64_t minimum = step.minimum == UINT64_MAX ? 0 : step.minimum;
    row->set_minimum(minimum);
    // A step that only frees has no peak of an allocation.
    row->set_peak(std::max(minimum, i < scan.step_peaks.size() ? scan.step_peaks[i] : 0));
    row->set_reserved(step.reserved);
    row->set_retries(step.retries);
    row->set_begin_ns(since_start(step.begin_ns));
    row->set_end_ns(since_start(std::max(step.begin_ns, step.end_ns)));
  }
}

void FillChanges(const attribution::Breakdown& here, const attribution::Breakdown& highest,
                 v1::LocalPeak* peak) {
  for (size_t i = 0; i < attribution::kMemoryClassCount; ++i) {
    const auto memory_class = static_cast<attribution::MemoryClass>(i);
    const uint64_t bytes = here.classes[i].tensor_bytes;
    const uint64_t there = highest.classes[i].tensor_bytes;
    if (bytes == 0 && there == 0) continue;
    v1::ClassChange* change = peak->add_changes();
    change->set_key(std::string(attribution::KeyOf(memory_class)));
    change->set_words(std::string(attribution::WordsOf(memory_class)));
    change->set_bytes(bytes);
    change->set_change(static_cast<int64_t>(bytes - there));  // a hostile trace's sums may wrap
  }
  std::stable_sort(peak->mutable_changes()->begin(), peak->mutable_changes()->end(),
                   [](const v1::ClassChange& a, const v1::ClassChange& b) {
                     return std::llabs(a.change()) > std::llabs(b.change());
                   });
}

}  // namespace vramtrace::report
