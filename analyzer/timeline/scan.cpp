#include "analyzer/timeline/scan.h"

#include <algorithm>
#include <unordered_map>

#include "analyzer/model/parse_body.h"
#include "analyzer/trace/event_stream.h"

namespace vramtrace::timeline {
namespace {

using model::StringId;
using trace::Event;
using trace::PacketKind;
using trace::Statistic;

uint64_t Absolute(const Event& event, int64_t delta) {
  return event.base_address + static_cast<uint64_t>(delta);
}

void Raise(Peak* peak, uint64_t bytes, const Instant& instant) {
  if (bytes <= peak->bytes) return;
  peak->bytes = bytes;
  peak->instant = instant;
}

// A segment is taken for the block that comes next, whose event knows the module and the running node; the
// driver's event does not.
void PlaceByBlock(Peak* peak, const Instant& block) {
  peak->instant.phase = block.phase;
  peak->instant.stack = block.stack;
  peak->instant.autograd = block.autograd;
}

class Scanner {
 public:
  Scanner(std::shared_ptr<trace::TraceFile> file, std::shared_ptr<const model::Tables> tables,
          std::shared_ptr<const model::StackTable> stacks)
      : file_(std::move(file)), tables_(tables), stacks_(stacks), replay_(tables, stacks) {
    scan_.sites.resize(tables->stacks.size());
    scan_.frame_sites.resize(tables->frames.size());
  }

  Scan Run(trace::EventStream::Counting counting, uint64_t until) {
    trace::EventStream stream(file_, counting);
    while (const trace::Event* event = stream.Next()) {
      if (event->has_sequence && event->sequence > until) break;
      Add(*event);
    }
    if (until == UINT64_MAX) AddSummaries();
    scan_.completed_steps = replay_.completed_steps();
    for (auto& [index, device] : replay_.devices()) {
      DeviceScan& result = scan_.devices[index];
      result.contradictions = device.memory.contradictions();
      result.counters = device.memory.counters();
      result.local_peaks = local_peaks_[index].Take();
      result.total_bytes = device.memory.total_bytes();
      result.context_bytes = device.memory.context_bytes().value_or(0);
    }
    return std::move(scan_);
  }

 private:
  void Add(const Event& event) {
    if (event.has_sequence) CountTime(event);
    const uint64_t steps = replay_.completed_steps();
    const Applied applied = replay_.Apply(event);
    if (replay_.completed_steps() != steps) scan_.last_step_end = event.sequence;
    if (applied.device != nullptr) {
      AddToDevice(event, applied, &scan_.devices[applied.device_index]);
      return;
    }
    switch (event.kind) {
      case PacketKind::kLabel:
        return AddLabel(event);
      case PacketKind::kInputTensor:
        return AddInput(event);
      case PacketKind::kStep:
        return AddStep(event);
      case PacketKind::kHostAllocate:
      case PacketKind::kHostFree:
        return AddHost(event);
      default:
        return;
    }
  }

  void CountTime(const Event& event) {
    ++scan_.events;
    if (scan_.first_time_ns == 0) scan_.first_time_ns = event.time_ns;
    scan_.last_time_ns = std::max(scan_.last_time_ns, event.time_ns);
    if (!tables_->stacks.Has(event.stack) && event.stack != model::StackId::kNone) {
      file_->statistics().Add(Statistic::kUnknownReference);
    }
  }

  // What the recorder counted of steps whose events it left out.
  void AddSummaries() {
    if (tables_->dropped.empty()) return;
    for (const model::StepSummaryRow& row : tables_->step_summaries) {
      const auto found = scan_.devices.find(row.device);
      if (found == scan_.devices.end()) continue;
      DeviceScan& device = found->second;
      const uint64_t end = row.first_step + std::min<uint64_t>(row.steps, kMaxStepPeaks);
      for (uint64_t step = row.first_step; step < std::min<uint64_t>(end, kMaxStepPeaks); ++step) {
        // Of one step the summary is exact, also where a part of it was left out.
        if (row.steps != 1 && !IsDropped(step)) continue;
        if (device.step_peaks.size() <= step) device.step_peaks.resize(step + 1);
        device.step_peaks[step] = std::max(device.step_peaks[step], row.peak);
      }
      if (row.peak > std::max(device.dropped_peak, device.allocated.bytes) && device.block_allocations > 0) {
        device.dropped_peak = row.peak;
        device.dropped_peak_step = row.first_step;
      }
    }
  }

  [[nodiscard]] bool IsDropped(uint64_t step) const {
    return std::any_of(tables_->dropped.begin(), tables_->dropped.end(),
                       [step](const model::DroppedRow& row) {
                         return step >= row.first_step && step - row.first_step < row.steps;
                       });
  }

  void AddToDevice(const Event& event, const Applied& applied, DeviceScan* device) {
    const DeviceMemory& memory = applied.device->memory;
    AddToStep(event, applied, device);
    switch (event.kind) {
      case PacketKind::kBlockAllocate:
        AddBlock(event, applied, device);
        break;
      case PacketKind::kBlockFree:
        ++device->block_frees;
        // What an out-of-memory error lets go while it unwinds says nothing of how the call site lives.
        if (applied.freed && !device->EndedOutOfMemory()) CountLife(event, *applied.freed, *applied.device);
        break;
      case PacketKind::kDriverAllocate:
        AddDriverAllocation(event, applied, device);
        break;
      case PacketKind::kDriverFree:
        ++device->driver_frees;
        break;
      case PacketKind::kOutOfMemory:
        AddOutOfMemory(event, applied, device);
        break;
      default:
        break;
    }
    if (event.kind == PacketKind::kBlockFree) return;
    Raise(&device->reserved, memory.reserved(), applied.instant);
    Raise(&device->driver, memory.driver_bytes(), applied.instant);
    device->managed_peak = std::max(device->managed_peak, memory.managed_bytes());
    if (const std::optional<uint64_t> used = memory.device_used()) {
      device->used_ever_known = true;
      Raise(&device->used, *used, applied.instant);
    }
  }

  void AddToStep(const Event& event, const Applied& applied, DeviceScan* device) {
    const DeviceMemory& memory = applied.device->memory;
    const bool block = event.kind == PacketKind::kBlockAllocate || event.kind == PacketKind::kBlockFree;
    if (block) {
      LocalPeaks* peaks = PeaksOf(applied.device_index);
      peaks->Add(memory.allocated(), applied.instant, (*stacks_)[event.stack].module_object);
    }
    const uint64_t step = applied.instant.step;
    if (step >= kMaxStepRows) return;
    if (device->steps.size() <= step) {
      const size_t before = device->steps.size();
      device->steps.resize(step + 1);
      for (size_t i = before; i <= step; ++i) device->steps[i].begin_ns = event.time_ns;
    }
    StepRow& row = device->steps[step];
    if (block) row.minimum = std::min(row.minimum, memory.allocated());
    row.reserved = std::max(row.reserved, memory.reserved());
    row.end_ns = std::max(row.end_ns, event.time_ns);
    const bool refused =
        event.kind == PacketKind::kDriverAllocate && event.result == trace::kResultOutOfMemory;
    if (refused) ++row.retries;
  }

  LocalPeaks* PeaksOf(uint32_t device) {
    if (newest_peaks_ == nullptr || newest_device_ != device) {
      newest_peaks_ = &local_peaks_[device];
      newest_device_ = device;
    }
    return newest_peaks_;
  }

  void AddBlock(const Event& event, const Applied& applied, DeviceScan* device) {
    if (scan_.main_thread == model::ThreadId::kNone) scan_.main_thread = event.thread;
    ++device->block_allocations;
    ++device->allocations;
    if (event.requested == 0) ++device->blocks_without_request;
    for (Peak* peak : {&device->reserved, &device->used, &device->driver}) {
      if (peak->instant.sequence > last_block_[applied.device_index]) PlaceByBlock(peak, applied.instant);
    }
    last_block_[applied.device_index] = event.sequence;
    const uint64_t allocated = applied.device->memory.allocated();
    Raise(&device->allocated, allocated, applied.instant);
    const uint64_t step = applied.instant.step;
    if (step >= kMaxStepPeaks) return;
    if (device->step_peaks.size() <= step) device->step_peaks.resize(step + 1);
    device->step_peaks[step] = std::max(device->step_peaks[step], allocated);
  }

  void CountLife(const Event& event, const Block& block, const DeviceState& device) {
    if (block.phase != model::Phase::kForward || block.stack == model::StackId::kNone) return;
    const bool outlived = device.last_backward_sequence > block.sequence;
    const auto count = [&](std::vector<SiteLives>* sites, uint32_t index) {
      if (index >= sites->size()) return;
      SiteLives& lives = (*sites)[index];
      ++(outlived ? lives.outlived_forward : lives.died_in_forward);
      if (!outlived) lives.longest_death = std::max(lives.longest_death, event.sequence - block.sequence);
    };
    count(&scan_.sites, trace::Raw(block.stack));
    count(&scan_.frame_sites, trace::Raw((*stacks_)[block.stack].innermost));
  }

  void AddDriverAllocation(const Event& event, const Applied& applied, DeviceScan* device) {
    if (event.result == 0) {
      ++device->driver_allocations;
      ++device->allocations;
      return;
    }
    if (event.result != trace::kResultOutOfMemory) return;
    ++device->refused_driver_calls;
    Refusal refusal;
    refusal.instant = applied.instant;
    refusal.requested = event.bytes;
    refusal.driver_requested = event.bytes;
    refusal.caller = event.caller;
    refusal.function = event.function;
    refusal.caching_allocator = false;
    refusal.allocations_before = device->allocations;
    last_refused_[applied.device_index] = refusal;
    // The caching allocator retries and reports by itself; nobody else does.
    if (tables_->Text(event.caller).find("c10_cuda") == std::string_view::npos) Keep(device, refusal);
  }

  void AddOutOfMemory(const Event& event, const Applied& applied, DeviceScan* device) {
    Refusal refusal;
    refusal.instant = applied.instant;
    refusal.requested = event.requested;
    refusal.allocated_total = event.allocated_total;
    refusal.reserved_total = event.reserved_total;
    refusal.allocations_before = device->allocations;
    const auto refused = last_refused_.find(applied.device_index);
    if (refused != last_refused_.end() && refused->second.allocations_before == device->allocations) {
      refusal.driver_requested = refused->second.driver_requested;
      refusal.caller = refused->second.caller;
      refusal.function = refused->second.function;
    }
    Keep(device, refusal);
  }

  static void Keep(DeviceScan* device, const Refusal& refusal) {
    ++device->refusal_count;
    if (device->refusals.size() < kMaxRefusals) {
      device->refusals.push_back(refusal);
    } else {
      device->refusals.back() = refusal;
    }
  }

  void AddLabel(const Event& event) {
    v1::Label label;
    if (!model::ParseBody(event, &label)) return file_->statistics().Add(Statistic::kMalformedPacket);
    scan_.labels.push_back({event.sequence,
                            Absolute(event, label.address_delta()),
                            label.bytes(),
                            label.kind(),
                            StringId{label.name()},
                            StringId{label.state_key()},
                            StringId{label.dtype()},
                            {label.shape().begin(), label.shape().end()},
                            label.device()});
  }

  void AddInput(const Event& event) {
    v1::InputTensor input;
    if (!model::ParseBody(event, &input)) return file_->statistics().Add(Statistic::kMalformedPacket);
    if (input_step_count_ == 0 || input.step() != newest_input_step_) {
      // Keep the first step's rows and drop those of the step before this one.
      if (input_step_count_ >= 2) scan_.inputs.resize(first_inputs_);
      if (input_step_count_ == 1) first_inputs_ = scan_.inputs.size();
      ++input_step_count_;
      newest_input_step_ = input.step();
    }
    scan_.inputs.push_back({StringId{input.name()},
                            StringId{input.dtype()},
                            {input.shape().begin(), input.shape().end()},
                            input.bytes(),
                            input.step(),
                            input.on_device()});
  }

  void AddStep(const Event& event) {
    v1::Step step;
    if (!model::ParseBody(event, &step)) return file_->statistics().Add(Statistic::kMalformedPacket);
    const std::string name(tables_->Text(StringId{step.optimizer()}));
    const auto& known = scan_.optimizers;
    if (!name.empty() && std::find(known.begin(), known.end(), name) == known.end()) {
      scan_.optimizers.push_back(name);
    }
  }

  void AddHost(const Event& event) {
    if (event.result != 0) {
      ++scan_.host.refused;
      return;
    }
    if (event.kind == PacketKind::kHostAllocate) {
      host_[event.address] = event.bytes;
      scan_.host.bytes += event.bytes;
      scan_.host.peak = std::max(scan_.host.peak, scan_.host.bytes);
    } else if (const auto found = host_.find(event.address); found != host_.end()) {
      scan_.host.bytes -= found->second;
      host_.erase(found);
    }
  }

  std::shared_ptr<trace::TraceFile> file_;
  std::shared_ptr<const model::Tables> tables_;
  std::shared_ptr<const model::StackTable> stacks_;
  Replay replay_;
  Scan scan_;
  std::map<uint32_t, Refusal> last_refused_;    // driver calls, by device
  std::map<uint32_t, uint64_t> last_block_;     // sequence of the newest block allocation, by device
  std::map<uint32_t, LocalPeaks> local_peaks_;  // by device
  LocalPeaks* newest_peaks_ = nullptr;          // of newest_device_: most traces have one
  uint32_t newest_device_ = 0;
  std::unordered_map<uint64_t, uint64_t> host_;
  uint64_t input_step_count_ = 0;
  uint64_t newest_input_step_ = 0;
  size_t first_inputs_ = 0;
};

}  // namespace

bool DeviceScan::EndedOutOfMemory() const {
  return !refusals.empty() && refusals.back().allocations_before == allocations;
}

Scan ScanTrace(const std::shared_ptr<trace::TraceFile>& file,
               const std::shared_ptr<const model::Tables>& tables,
               const std::shared_ptr<const model::StackTable>& stacks) {
  return Scanner(file, tables, stacks).Run(trace::EventStream::Counting::kCount, UINT64_MAX);
}

Scan ScanTraceUntil(const std::shared_ptr<trace::TraceFile>& file,
                    const std::shared_ptr<const model::Tables>& tables,
                    const std::shared_ptr<const model::StackTable>& stacks, uint64_t until) {
  return Scanner(file, tables, stacks).Run(trace::EventStream::Counting::kSilent, until);
}

}  // namespace vramtrace::timeline
