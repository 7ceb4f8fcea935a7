#include "analyzer/diagnose/history.h"

#include <algorithm>

#include "analyzer/trace/event_stream.h"

namespace vramtrace::diagnose {

uint64_t History::Most(model::Phase phase, size_t from, size_t to) const {
  uint64_t most = 0;
  for (size_t i = from; i < std::min(to, steps.size()); ++i) {
    most = std::max(most, steps[i].most[static_cast<size_t>(phase)]);
  }
  return most;
}

History ReadHistory(const std::shared_ptr<trace::TraceFile>& file,
                    const std::shared_ptr<const model::Tables>& tables,
                    const std::shared_ptr<const model::StackTable>& stacks, uint32_t device, uint64_t until) {
  History history;
  timeline::Replay replay(tables, stacks);
  trace::EventStream stream(file);
  trace::Event event;
  while (stream.Next(&event)) {
    const timeline::Applied applied = replay.Apply(event);
    if (applied.device == nullptr || applied.device_index != device) continue;
    if (event.sequence > until) break;
    const size_t step = replay.completed_steps();
    if (step >= kMaxSteps) break;
    if (history.steps.size() <= step) history.steps.resize(step + 1);
    StepRow& row = history.steps[step];
    const timeline::DeviceMemory& memory = applied.device->memory;
    const uint64_t allocated = memory.allocated();
    const auto phase = static_cast<size_t>(applied.instant.phase);
    if (applied.instant.phase == model::Phase::kRecompute) history.recomputes = true;
    if (allocated > row.peak) {
      row.peak = allocated;
      row.peak_at = applied.instant;
    }
    row.low = std::min(row.low, allocated);
    row.reserved = std::max(row.reserved, memory.reserved());
    // A free that comes late, in the next phase, is no peak of that phase.
    const bool grows = event.kind == trace::PacketKind::kBlockAllocate;
    if (grows && phase < kPhases) row.most[phase] = std::max(row.most[phase], allocated);
    const bool taken = event.kind == trace::PacketKind::kDriverAllocate && event.result == 0;
    row.segments_taken += taken ? 1 : 0;
    row.segments_given_back += event.kind == trace::PacketKind::kDriverFree ? 1 : 0;
    if (!applied.device->seen_forward && allocated > history.peak_before_forward) {
      history.peak_before_forward = allocated;
      history.before_forward_at = applied.instant;
    }
  }
  // Steps whose events were left out, as the recorder counted them.
  for (const model::StepSummaryRow& summary : tables->step_summaries) {
    if (summary.device != device || tables->dropped.empty() || summary.steps != 1) continue;
    if (summary.first_step >= history.steps.size()) continue;
    StepRow& row = history.steps[summary.first_step];
    row.peak = std::max(row.peak, summary.peak);
    row.low = std::min(row.low, summary.low);
    row.reserved = std::max(row.reserved, summary.reserved);
  }
  history.completed = std::min<uint64_t>(replay.completed_steps(), history.steps.size());
  return history;
}

Line FitLine(const std::vector<double>& y) {
  Line line;
  const auto n = static_cast<double>(y.size());
  if (y.size() < 2) return line;
  double sum = 0;
  double weighted = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    sum += y[i];
    weighted += static_cast<double>(i) * y[i];
  }
  const double middle = (n - 1) / 2;
  const double mean = sum / n;
  const double spread = n * (n * n - 1) / 12;  // of the step numbers
  line.slope = (weighted - middle * sum) / spread;
  double total = 0;
  double left = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    const double off = y[i] - mean;
    const double expected = line.slope * (static_cast<double>(i) - middle);
    total += off * off;
    left += (off - expected) * (off - expected);
  }
  line.fit = total > 0 ? 1 - left / total : 0;
  return line;
}

}  // namespace vramtrace::diagnose
