#include "analyzer/report/build.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "analyzer/attribution/breakdown.h"
#include "analyzer/attribution/out_of_memory.h"
#include "analyzer/report/notes.h"
#include "analyzer/report/refusal_text.h"
#include "analyzer/report/series.h"
#include "analyzer/report/title.h"
#include "analyzer/report/views.h"
#include "analyzer/symbolize/names.h"
#include "analyzer/timeline/batch.h"
#include "analyzer/timeline/scan.h"
#include "analyzer/timeline/snapshot.h"
#include "analyzer/trace/being_written.h"

namespace vramtrace::report {
namespace {

using attribution::Breakdown;
using timeline::DeviceScan;
using timeline::Instant;
using timeline::Snapshot;
using timeline::SnapshotRequest;

class Builder {
 public:
  Builder(std::shared_ptr<trace::TraceFile> file, const BuildOptions& options)
      : file_(std::move(file)), options_(options) {}

  trace::Result<BuiltReport> Run() {
    tables_ = model::ReadTables(*file_);
    stacks_ = std::make_shared<model::StackTable>(*tables_);
    scan_ = timeline::ScanTrace(file_, tables_, stacks_);
    if (scan_.events == 0) {
      return trace::Error{
          file_->path(), std::nullopt,
          "the trace holds no events: the process opened it and recorded nothing. Expected at least "
          "one allocation."};
    }
    FillTrace();
    FillProgram();
    FillSteps();
    FillDevices();
    AddNotes(*file_, *tables_, scan_, &report_);
    return BuiltReport{std::move(report_),
                       file_->statistics().Damaged(),
                       file_,
                       tables_,
                       stacks_,
                       std::make_shared<const timeline::Scan>(std::move(scan_))};
  }

 private:
  void FillTrace() {
    report_.set_schema(1);
    report_.set_vramtrace_version(VRAMTRACE_VERSION);
    v1::Trace* trace = report_.mutable_trace();
    trace->set_path(file_->path());
    trace->set_bytes(file_->size());
    trace->set_events(scan_.events);
    trace->set_duration_ns(scan_.last_time_ns - std::min(scan_.first_time_ns, scan_.last_time_ns));
    trace->set_first_event_ns(scan_.first_time_ns);
    trace->set_complete(tables_->has_trailer);
    trace->set_writer_version(tables_->process.writer_version());
    const bool open = !tables_->has_trailer && !file_->chunks().empty() &&
                      trace::IsMappedBy(file_->chunks().front().fields.process_id, file_->path());
    trace->set_being_written(open);
  }

  void FillProgram() {
    const vramtrace::v1::Process& process = tables_->process;
    v1::Program* program = report_.mutable_program();
    for (const std::string& argument : process.argument()) program->add_arguments(argument);
    program->set_pid(process.pid());
    program->set_rank(process.rank());
    program->set_world_size(process.world_size());
    program->set_python_version(process.python_version());
    program->set_torch_version(process.torch_version());
    program->set_cuda_runtime_version(process.cuda_runtime_version());
    program->set_driver_version(process.driver_version());
    program->set_host(process.host());
    program->set_start_unix_ns(process.start_unix_ns());
  }

  void FillSteps() {
    v1::Steps* steps = report_.mutable_steps();
    steps->set_completed(scan_.completed_steps);
    for (const std::string& optimizer : scan_.optimizers) steps->add_optimizers(optimizer);
    if (scan_.inputs.empty()) return;
    const uint64_t newest = scan_.inputs.back().step;
    for (const timeline::InputRow& row : scan_.inputs) {
      if (row.step != newest) continue;
      v1::Input* input = steps->add_inputs();
      input->set_name(std::string(tables_->Text(row.name)));
      input->set_dtype(std::string(tables_->Text(row.dtype)));
      input->set_bytes(row.bytes);
      input->set_on_device(row.on_device);
      for (const int64_t dimension : row.shape) input->add_shape(dimension);
    }
    steps->set_batch(timeline::BatchOf(scan_));
  }

  // What each device's breakdowns are taken at.
  struct Plan {
    uint32_t device = 0;
    const DeviceScan* scan = nullptr;
    std::optional<size_t> peak;     // index of the request
    std::optional<size_t> refusal;  // likewise
    std::optional<size_t> instant;  // likewise: the one that was asked for
    size_t local_peaks = 0;         // the first of them; as many as FillLocalPeaks wants
  };

  // Without blocks (another allocator than PyTorch's) the peak is that of the device's memory.
  static const timeline::Peak& PeakToExplain(const DeviceScan& device) {
    if (device.block_allocations > 0) return device.allocated;
    return device.used_ever_known ? device.used : device.driver;
  }

  // Local peaks whose live sets are compared.
  [[nodiscard]] size_t LocalPeaksOf(const DeviceScan& device) const {
    constexpr size_t kMost = 8;
    return options_.views ? std::min(kMost, device.local_peaks.size()) : 0;
  }

  // What was asked for, where the scan knows it. The refusal at hand is the newest.
  [[nodiscard]] std::optional<Instant> KnownInstant(const DeviceScan& device) const {
    using Kind = timeline::InstantQuery::Kind;
    if (options_.at->kind == Kind::kPeak && PeakToExplain(device).bytes > 0) {
      return PeakToExplain(device).instant;
    }
    if (options_.at->kind == Kind::kOom && !device.refusals.empty()) return device.refusals.back().instant;
    return std::nullopt;
  }

  void FillDevices() {
    std::vector<Plan> plans;
    std::vector<SnapshotRequest> requests;
    std::map<uint32_t, Instant> found;
    if (options_.at)
      found = timeline::FindInstant(file_, tables_, stacks_, *options_.at, scan_.first_time_ns);
    for (const auto& [index, device] : scan_.devices) {
      if (device.allocations == 0 && device.refusals.empty()) continue;
      Plan plan;
      plan.device = index;
      plan.scan = &device;
      const bool ended = device.EndedOutOfMemory();
      const uint64_t evidence = ended ? device.refusals.back().instant.sequence : UINT64_MAX;
      const timeline::Peak& peak = PeakToExplain(device);
      if (peak.bytes > 0) {
        plan.peak = requests.size();
        requests.push_back({index, peak.instant, evidence});
      }
      if (ended) {
        plan.refusal = requests.size();
        requests.push_back({index, device.refusals.back().instant, evidence});
      }
      if (options_.at) {
        std::optional<Instant> instant = KnownInstant(device);
        if (!instant && found.contains(index)) instant = found[index];
        if (instant) {
          plan.instant = requests.size();
          requests.push_back({index, *instant, evidence});
        }
      }
      plan.local_peaks = requests.size();
      for (size_t i = 0; i < LocalPeaksOf(device); ++i) {
        requests.push_back({index, device.local_peaks[i].instant, evidence});
      }
      plans.push_back(plan);
    }
    const std::vector<Snapshot> snapshots = timeline::TakeSnapshots(file_, tables_, stacks_, requests);
    for (const Plan& plan : plans) FillDevice(plan, snapshots);
  }

  void FillDevice(const Plan& plan, const std::vector<Snapshot>& snapshots) {
    v1::DeviceReport* device = report_.add_devices();
    const DeviceScan& scan = *plan.scan;
    FillDeviceFacts(plan.device, scan, device);
    FillPeak(scan.allocated, device->mutable_peak_allocated());
    FillPeak(scan.reserved, device->mutable_peak_reserved());
    if (scan.used_ever_known) FillPeak(scan.used, device->mutable_peak_used());
    device->set_block_allocations(scan.block_allocations);
    device->set_block_frees(scan.block_frees);
    device->set_driver_allocations(scan.driver_allocations);
    device->set_driver_frees(scan.driver_frees);
    device->set_refused_driver_calls(scan.refused_driver_calls);
    device->set_out_of_memory_count(scan.refusal_count);
    for (const uint64_t bytes : scan.step_peaks) device->add_step_peak_allocated(bytes);
    FillStepRows(scan, scan_.first_time_ns, device);
    v1::CounterCheck* check = device->mutable_counter_check();
    check->set_comparisons(scan.counters.comparisons);
    check->set_differences(scan.counters.allocated_differences + scan.counters.reserved_differences);
    check->set_largest_allocated_difference(scan.counters.largest_allocated_difference);
    check->set_largest_reserved_difference(scan.counters.largest_reserved_difference);

    FillLocalPeaks(plan, snapshots, device);
    if (plan.peak) FillBreakdown(snapshots[*plan.peak], plan.refusal.has_value(), device->mutable_at_peak());
    if (plan.instant) {
      const Snapshot& snapshot = snapshots[*plan.instant];
      const bool at_refusal =
          plan.refusal && snapshot.request.instant.sequence == scan.refusals.back().instant.sequence;
      FillBreakdown(snapshot, at_refusal, device->mutable_at_instant());
      device->set_instant(options_.at->text);
    }
    if (!plan.refusal) return;
    const Snapshot& snapshot = snapshots[*plan.refusal];
    const attribution::FreeSpace free_space = FillBreakdown(snapshot, true, device->mutable_at_refusal());
    FillRefusal(scan.refusals.back(), snapshot, free_space, device);
  }

  [[nodiscard]] uint64_t SinceStart(uint64_t time_ns) const {
    return time_ns - std::min(time_ns, scan_.first_time_ns);
  }

  void FillLocalPeaks(const Plan& plan, const std::vector<Snapshot>& snapshots, v1::DeviceReport* device) {
    std::vector<Breakdown> explained;
    for (size_t i = 0; i < LocalPeaksOf(*plan.scan); ++i) {
      explained.push_back(
          attribution::Explain(*tables_, *stacks_, scan_, snapshots[plan.local_peaks + i], false));
    }
    for (size_t i = 0; i < plan.scan->local_peaks.size(); ++i) {
      const timeline::LocalPeak& peak = plan.scan->local_peaks[i];
      v1::LocalPeak* row = device->add_local_peaks();
      row->set_bytes(peak.bytes);
      row->set_times(peak.times);
      const bool compared = i < explained.size();
      const Snapshot* snapshot = compared ? &snapshots[plan.local_peaks + i] : nullptr;
      FillMoment(peak.instant, compared ? snapshot->forward_stack : model::StackId::kNone,
                 compared ? snapshot->forward_sequence : 0, row->mutable_moment());
      if (compared) FillChanges(explained[i], explained.front(), row);
    }
  }

  void FillDeviceFacts(uint32_t index, const DeviceScan& scan, v1::DeviceReport* device) {
    device->set_device(index);
    device->set_simulated(tables_->Simulated(index));
    device->set_total_bytes(scan.total_bytes);
    const auto known = tables_->devices.find(index);
    if (known == tables_->devices.end()) return;
    device->set_name(known->second.name());
    device->set_uuid(known->second.uuid());
    if (scan.total_bytes == 0) device->set_total_bytes(known->second.total_bytes());
  }

  void FillPeak(const timeline::Peak& peak, v1::Peak* out) {
    out->set_bytes(peak.bytes);
    if (peak.bytes > 0) FillMoment(peak.instant, {}, 0, out->mutable_moment());
  }

  // `forward_stack`: of the forward that made the running node, where it is known.
  void FillMoment(const Instant& instant, model::StackId forward_stack, uint64_t forward_sequence,
                  v1::Moment* out) {
    out->set_sequence(instant.sequence);
    out->set_time_ns(SinceStart(instant.time_ns));
    out->set_step(instant.step);
    out->set_phase(std::string(model::PhaseName(instant.phase)));
    const model::StackFacts& stack = (*stacks_)[instant.stack];
    attribution::ModuleRef module = attribution::ModuleOf(*tables_, stack, instant.sequence);
    if (!module.known && forward_stack != model::StackId::kNone) {
      module = attribution::ModuleOf(*tables_, (*stacks_)[forward_stack], forward_sequence);
    }
    out->set_has_module(module.known);
    out->set_module_path(module.path);
    out->set_module_class(module.class_name);
    if (instant.autograd.operator_name != model::StringId::kNone) {
      out->set_operator_(symbolize::OperatorName(tables_->Text(instant.autograd.operator_name)));
    }
    out->set_site(model::FrameText(*tables_, stack.site));
    out->set_script(model::FrameText(*tables_, stack.script));
  }

  attribution::FreeSpace FillBreakdown(const Snapshot& snapshot, bool at_refusal, v1::Breakdown* out) {
    const Breakdown breakdown = attribution::Explain(*tables_, *stacks_, scan_, snapshot, at_refusal);
    FillMoment(snapshot.request.instant, snapshot.forward_stack, snapshot.forward_sequence,
               out->mutable_moment());
    out->set_allocated(snapshot.allocated);
    out->set_reserved(snapshot.reserved);
    out->set_rounding(breakdown.rounding);
    FillIdentity(breakdown.identity, out->mutable_identity());
    FillClasses(breakdown, out);
    out->set_allocation_count(breakdown.allocations.size());
    const size_t count = options_.allocations == 0
                             ? breakdown.allocations.size()
                             : std::min(options_.allocations, breakdown.allocations.size());
    for (size_t i = 0; i < count; ++i) {
      FillAllocation(snapshot, breakdown.allocations[i], out->add_allocations());
    }
    if (options_.views) FillViews(*tables_, snapshot, breakdown, out->mutable_views());
    v1::Cache* cache = out->mutable_cache();
    const attribution::FreeSpace& space = breakdown.free_space;
    cache->set_free_bytes(space.small.bytes + space.large.bytes);
    cache->set_largest_hole(space.large.largest);
    cache->set_holes(space.small.holes + space.large.holes);
    cache->set_whole_segments_free(space.small.whole_segments + space.large.whole_segments);
    return space;
  }

  static void FillIdentity(const attribution::Identity& identity, v1::Identity* out) {
    out->set_device_used(identity.device_used);
    out->set_device_used_known(identity.device_used_known);
    out->set_device_used_basis(identity.device_used_basis);
    out->set_sum(identity.sum);
    out->set_mismatch(identity.Mismatch());
    for (const attribution::Term& term : identity.terms) {
      v1::Term* row = out->add_terms();
      row->set_key(term.key);
      row->set_words(term.words);
      row->set_bytes(term.bytes);
      row->set_basis(term.basis);
      row->set_detail(term.detail);
    }
  }

  static void FillClasses(const Breakdown& breakdown, v1::Breakdown* out) {
    for (size_t i = 0; i < attribution::kMemoryClassCount; ++i) {
      const attribution::ClassTotal& total = breakdown.classes[i];
      if (total.blocks == 0) continue;
      v1::ClassRow* row = out->add_classes();
      row->set_key(std::string(attribution::KeyOf(static_cast<attribution::MemoryClass>(i))));
      row->set_words(std::string(attribution::WordsOf(static_cast<attribution::MemoryClass>(i))));
      row->set_bytes(total.tensor_bytes);
      row->set_block_bytes(total.block_bytes);
      row->set_blocks(total.blocks);
      row->set_unsure_bytes(total.unsure_bytes);
    }
    std::stable_sort(out->mutable_classes()->begin(), out->mutable_classes()->end(),
                     [](const v1::ClassRow& a, const v1::ClassRow& b) { return a.bytes() > b.bytes(); });
  }

  void FillAllocation(const Snapshot& snapshot, const attribution::Allocation& allocation,
                      v1::Allocation* out) {
    const timeline::LiveBlock& live = snapshot.blocks[allocation.block];
    const timeline::Block& block = live.block;
    out->set_address(block.address);
    out->set_bytes(block.TensorBytes());
    out->set_block_bytes(block.bytes);
    out->set_requested_known(block.requested != 0);
    out->set_class_(std::string(attribution::KeyOf(allocation.verdict.memory_class)));
    out->set_confidence(std::string(attribution::NameOf(allocation.verdict.confidence)));
    out->set_evidence(allocation.verdict.evidence);
    out->set_rule(std::string(allocation.verdict.rule));
    for (const std::string& name : allocation.names) out->add_names(name);
    out->set_state_key(allocation.state_key);
    out->set_copy_of(allocation.copy_of);
    out->set_title(TitleOf(allocation));
    out->set_dtype(allocation.dtype);
    for (const int64_t dimension : allocation.shape) out->add_shape(dimension);
    out->set_module_path(allocation.module_path);
    out->set_module_class(allocation.module_class);
    out->set_has_module(allocation.has_module);
    out->set_phase(std::string(model::PhaseName(block.phase)));
    out->set_step(block.step);
    out->set_operator_(allocation.operator_name);
    // A backward allocation has no Python frames of its own: show those of the forward it belongs to.
    const model::StackFacts& own = (*stacks_)[block.stack];
    const bool borrowed =
        own.innermost == model::FrameId::kNone && live.forward_stack != model::StackId::kNone;
    const model::StackFacts& stack = borrowed ? (*stacks_)[live.forward_stack] : own;
    out->set_site(model::FrameText(*tables_, stack.site));
    out->set_script(model::FrameText(*tables_, stack.script));
    out->set_sequence(block.sequence);
  }

  void FillRefusal(const timeline::Refusal& refusal, const Snapshot& snapshot,
                   const attribution::FreeSpace& free_space, v1::DeviceReport* device) {
    const attribution::OutOfMemory facts = attribution::ExplainRefusal(refusal, snapshot, free_space);
    v1::OutOfMemory* out = device->mutable_out_of_memory();
    *out->mutable_moment() = device->at_refusal().moment();
    out->set_requested(facts.requested);
    out->set_from_driver(facts.from_driver);
    out->set_from_driver_recorded(facts.from_driver_recorded);
    out->set_caching_allocator(facts.caching_allocator);
    out->set_device_free(facts.device_free);
    out->set_free_known(facts.free_known);
    out->set_device_total(facts.device_total);
    out->set_allocated(facts.allocated);
    out->set_reserved(facts.reserved);
    out->set_cached_free(facts.cached_free);
    out->set_largest_hole(facts.largest_hole);
    out->set_holes(facts.holes);
    out->set_missing(facts.missing);
    out->set_device_needed(facts.device_needed);
    WordRefusal(facts, std::string(tables_->Text(refusal.caller)), tables_->process, device);
  }

  std::shared_ptr<trace::TraceFile> file_;
  BuildOptions options_;
  std::shared_ptr<const model::Tables> tables_;
  std::shared_ptr<const model::StackTable> stacks_;
  timeline::Scan scan_;
  v1::Report report_;
};

}  // namespace

trace::Result<BuiltReport> BuildReport(const std::string& path, const BuildOptions& options) {
  const trace::Result<std::shared_ptr<trace::TraceFile>> file = trace::TraceFile::Open(path);
  if (!file.ok()) return file.error();
  return Builder(file.value(), options).Run();
}

}  // namespace vramtrace::report
