#include "analyzer/forecast/build_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "analyzer/attribution/lives.h"
#include "analyzer/forecast/reductions.h"
#include "analyzer/forecast/repeated_steps.h"
#include "analyzer/forecast/site_key.h"
#include "analyzer/forecast/size_laws.h"
#include "analyzer/forecast/unfinished_step.h"
#include "analyzer/timeline/batch.h"

namespace vramtrace::forecast {
namespace {

using attribution::Life;

allocator::PyTorchVersion ParseVersion(std::string_view text) {
  allocator::PyTorchVersion version;
  const char* end = text.data() + text.size();
  const auto major = std::from_chars(text.data(), end, version.major);
  if (major.ec == std::errc() && major.ptr != end && *major.ptr == '.') {
    std::from_chars(major.ptr + 1, end, version.minor);
  }
  return version;
}

// The value of the newest name that is set: PyTorch 2.9 renamed the variable.
std::string AllocatorSettings(const v1::Process& process) {
  std::string value;
  for (const std::string_view name : {"PYTORCH_CUDA_ALLOC_CONF=", "PYTORCH_ALLOC_CONF="}) {
    for (const std::string& variable : process.environment()) {
      if (std::string_view(variable).starts_with(name)) value = variable.substr(name.size());
    }
  }
  return value;
}

uint32_t ElementSize(std::string_view dtype) {
  static const std::unordered_map<std::string_view, uint32_t> kSizes = {
      {"float64", 8},   {"float32", 4},     {"float16", 2},       {"bfloat16", 2},   {"int64", 8},
      {"int32", 4},     {"int16", 2},       {"int8", 1},          {"uint8", 1},      {"bool", 1},
      {"complex64", 8}, {"complex128", 16}, {"float8_e4m3fn", 1}, {"float8_e5m2", 1}};
  const auto found = kSizes.find(dtype.starts_with("torch.") ? dtype.substr(6) : dtype);
  return found == kSizes.end() ? 0 : found->second;
}

// Collects the lives of one device and lays them out as a stream.
class Builder {
 public:
  Builder(const model::Tables& tables, const model::StackTable& stacks, const timeline::Scan& scan,
          uint32_t device)
      : tables_(tables), stacks_(stacks), scan_(scan), device_(device), keys_(tables) {
    AddParameters();
    AddModules();
  }

  void Add(const Life& life) {
    if (life.device != device_) return;
    const timeline::LiveBlock& live = life.live;
    Request request;
    request.bytes = live.block.TensorBytes();
    request.site = SiteOf(life);
    request.step = static_cast<uint32_t>(std::min<uint64_t>(live.block.step, UINT32_MAX));
    request.memory_class = life.explained.verdict.memory_class;
    request.confidence = life.explained.verdict.confidence;
    request.is_copy = !life.explained.copy_of.empty();
    request.saved = live.block.phase == Phase::kForward && live.backward_followed;
    request.autograd_number = live.block.autograd.sequence_number;
    request.state_key = StateKey(life.explained.state_key);
    NameParameter(life.explained, &request);
    const RequestId id{static_cast<uint32_t>(stream_.requests.size())};
    stream_.requests.push_back(request);
    placed_.push_back({life.allocated, {EventKind::kAllocate, live.block.phase, id}});
    // What an out-of-memory error lets go while it unwinds is no part of the run.
    if (live.freed) placed_.push_back({life.freed, {EventKind::kFree, live.free_phase, id}});
  }

  // The request that ended the run: without it the stream would fit where the run did not.
  void AddRefusal(const timeline::Refusal& refusal) {
    const timeline::Instant& instant = refusal.instant;
    const model::StackFacts& stack = stacks_[instant.stack];
    const attribution::ModuleRef module = attribution::ModuleOf(tables_, stack, instant.sequence);
    stream_.sites.push_back({0, instant.phase, module.known, module.path, module.class_name, std::string(),
                             model::FrameText(tables_, stack.site)});
    Request request;
    request.bytes = refusal.requested;
    request.site = SiteId{static_cast<uint32_t>(stream_.sites.size() - 1)};
    request.step = static_cast<uint32_t>(std::min<uint64_t>(instant.step, UINT32_MAX));
    const RequestId id{static_cast<uint32_t>(stream_.requests.size())};
    stream_.requests.push_back(request);
    placed_.push_back({attribution::kNever, {EventKind::kAllocate, instant.phase, id}});
  }

  Stream Finish() && {
    std::sort(placed_.begin(), placed_.end(),
              [](const Placed& a, const Placed& b) { return a.tick < b.tick; });
    uint32_t step = 0;
    for (const Placed& placed : placed_) {
      if (placed.event.kind == EventKind::kAllocate) {
        for (; step < stream_[placed.event.request].step; ++step) stream_.events.push_back({});
      }
      stream_.events.push_back(placed.event);
    }
    for (; step < scan_.completed_steps; ++step) stream_.events.push_back({});
    NumberOrdinals();
    CarryNames();
    DropRepeatedSteps(&stream_);
    return std::move(stream_);
  }

 private:
  struct Placed {
    attribution::Tick tick = 0;
    Event event;
  };

  void AddParameters() {
    for (const timeline::LabelRow& row : scan_.labels) {
      if (row.device != device_ || row.kind != v1::Label::KIND_PARAMETER) continue;
      const std::string name(tables_.Text(row.name));
      const auto [place, added] =
          parameters_.try_emplace(name, static_cast<uint32_t>(stream_.parameters.size()));
      if (!added) continue;
      Parameter parameter;
      parameter.name = name;
      const size_t dot = name.rfind('.');
      if (dot != std::string::npos) parameter.module_path = name.substr(0, dot);
      parameter.bytes = row.bytes;
      parameter.dtype = std::string(tables_.Text(row.dtype));
      parameter.element_size = ElementSize(parameter.dtype);
      parameter.shape = row.shape;
      stream_.parameters.push_back(std::move(parameter));
    }
    // A label of a gradient may come before its parameter's.
    for (const timeline::LabelRow& row : scan_.labels) {
      if (row.device != device_ || row.kind == v1::Label::KIND_PARAMETER) continue;
      const auto known = parameters_.find(std::string(tables_.Text(row.name)));
      const bool trains = row.kind == v1::Label::KIND_GRADIENT || row.kind == v1::Label::KIND_OPTIMIZER_STATE;
      if (trains && known != parameters_.end()) stream_.parameters[known->second].trained = true;
    }
  }

  void AddModules() {
    std::vector<model::ModuleName> names;
    for (const auto& [object, of_object] : tables_.modules.all()) {
      names.insert(names.end(), of_object.begin(), of_object.end());
    }
    std::stable_sort(names.begin(), names.end(), [](const model::ModuleName& a, const model::ModuleName& b) {
      return a.sequence < b.sequence;
    });
    std::unordered_set<std::string_view> known;
    for (const model::ModuleName& name : names) {
      const std::string_view path = tables_.Text(name.path);
      if (!known.insert(path).second) continue;
      stream_.modules.push_back({std::string(path), std::string(tables_.Text(name.class_name))});
    }
  }

  void NameParameter(const attribution::Allocation& explained, Request* request) const {
    if (!explained.copy_of.empty()) request->parameter = FindParameter(explained.copy_of);
    const bool named = request->memory_class == MemoryClass::kWeight ||
                       request->memory_class == MemoryClass::kGradient ||
                       request->memory_class == MemoryClass::kOptimizerState;
    if (!named) return;
    for (const std::string& name : explained.names) {
      if (request->parameter == ParameterId::kNone) request->parameter = FindParameter(name);
    }
  }

  ParameterId FindParameter(const std::string& name) const {
    const auto found = parameters_.find(name);
    return found == parameters_.end() ? ParameterId::kNone : ParameterId{found->second};
  }

  uint16_t StateKey(const std::string& key) {
    std::vector<std::string>& keys = stream_.state_keys;
    const auto found = std::find(keys.begin(), keys.end(), key);
    if (found != keys.end()) return static_cast<uint16_t>(found - keys.begin());
    if (keys.size() > UINT16_MAX) return 0;
    keys.push_back(key);
    return static_cast<uint16_t>(keys.size() - 1);
  }

  SiteId SiteOf(const Life& life) {
    const timeline::Block& block = life.live.block;
    const uint64_t key = keys_.Of(block, life.explained);
    const auto [place, added] = sites_.try_emplace(key, static_cast<uint32_t>(stream_.sites.size()));
    if (added) stream_.sites.push_back(MakeSite(key, life));
    return SiteId{place->second};
  }

  Site MakeSite(uint64_t key, const Life& life) const {
    const timeline::LiveBlock& live = life.live;
    const model::StackFacts& own = stacks_[live.block.stack];
    const bool borrowed =
        own.innermost == model::FrameId::kNone && live.forward_stack != model::StackId::kNone;
    const model::StackFacts& stack = borrowed ? stacks_[live.forward_stack] : own;
    return {key,
            live.block.phase,
            life.explained.has_module,
            life.explained.module_path,
            life.explained.module_class,
            life.explained.operator_name,
            model::FrameText(tables_, stack.site)};
  }

  // Buffers of reductions, which a larger batch may have where a smaller one has none, are numbered apart:
  // what comes after them stays the same request.
  void NumberOrdinals() {
    constexpr uint32_t kOfReductions = 1U << 31;
    std::unordered_map<uint64_t, uint32_t> counts;      // by site, in the step under way
    std::unordered_map<uint64_t, uint32_t> reductions;  // likewise
    uint32_t step = 0;
    size_t reduction_until = 0;
    for (size_t place = 0; place < stream_.events.size(); ++place) {
      const Event& event = stream_.events[place];
      if (event.kind != EventKind::kAllocate) continue;
      Request& request = stream_[event.request];
      if (request.step != step) {
        counts.clear();
        reductions.clear();
      }
      step = request.step;
      if (IsReduction(stream_, place)) reduction_until = place + 2;
      const auto site = static_cast<uint64_t>(request.site);
      request.ordinal = place < reduction_until ? kOfReductions + reductions[site]++ : counts[site]++;
    }
  }

  // The recorder names gradients in the first steps only: the same request of a later step is the same
  // parameter's.
  void CarryNames() {
    std::map<std::tuple<SiteId, uint32_t, Bytes>, ParameterId> named;
    for (Request& request : stream_.requests) {
      if (request.memory_class != MemoryClass::kGradient) continue;
      ParameterId& name = named[{request.site, request.ordinal, request.bytes}];
      if (request.parameter != ParameterId::kNone) name = request.parameter;
    }
    for (Request& request : stream_.requests) {
      if (request.memory_class != MemoryClass::kGradient || request.parameter != ParameterId::kNone) continue;
      request.parameter = named[{request.site, request.ordinal, request.bytes}];
    }
  }

  const model::Tables& tables_;
  const model::StackTable& stacks_;
  const timeline::Scan& scan_;
  uint32_t device_;
  SiteKeys keys_;
  Stream stream_;
  std::vector<Placed> placed_;
  std::unordered_map<std::string, uint32_t> parameters_;
  std::unordered_map<uint64_t, uint32_t> sites_;
};

void FillFacts(const trace::TraceFile& file, const model::Tables& tables, const timeline::Scan& scan,
               uint32_t device, RunFacts* facts) {
  const timeline::DeviceScan& scanned = scan.devices.at(device);
  facts->trace = file.path();
  facts->device = device;
  const auto known = tables.devices.find(device);
  if (known != tables.devices.end()) {
    facts->gpu = known->second.name();
    facts->total = known->second.total_bytes();
  }
  if (scanned.total_bytes != 0) facts->total = scanned.total_bytes;
  facts->simulated = tables.Simulated(device);
  facts->peak_allocated = scanned.allocated.bytes;
  facts->peak_reserved = scanned.reserved.bytes;
  facts->peak_used = scanned.used_ever_known ? scanned.used.bytes : 0;
  if (facts->peak_used > facts->peak_reserved) facts->elsewhere = facts->peak_used - facts->peak_reserved;
  facts->context = std::min(scanned.context_bytes, facts->elsewhere);
  facts->batch = timeline::BatchOf(scan);
  for (const timeline::InputRow& row : scan.inputs) {
    if (row.step != scan.inputs.back().step) continue;
    facts->inputs.push_back(
        {std::string(tables.Text(row.name)), row.shape, std::string(tables.Text(row.dtype))});
  }
  facts->pytorch = ParseVersion(tables.process.torch_version());
  facts->allocator_settings = AllocatorSettings(tables.process);
  facts->optimizers = scan.optimizers;
  facts->command.assign(tables.process.argument().begin(), tables.process.argument().end());
  facts->steps = scan.completed_steps;
  facts->ended_out_of_memory = scanned.EndedOutOfMemory();
  facts->lost_events = !tables.losses.empty();
  facts->requests_without_size = scanned.blocks_without_request;
}

// What lies behind the first gap cannot be replayed. Where that holds the peak, a forecast from what lies
// before it would say "fits" of a run that does not.
std::optional<trace::Error> PeakBehindTheGap(const std::string& path, const timeline::DeviceScan& whole,
                                             const timeline::DeviceScan& front) {
  constexpr Bytes kTolerance = 100;  // 1 %: what steps of one program differ by
  if (whole.allocated.bytes <= front.allocated.bytes + front.allocated.bytes / kTolerance)
    return std::nullopt;
  return trace::Error{
      path, std::nullopt,
      fmt::format(
          "its peak of {} allocated bytes lies behind events that were left out to keep the file below its "
          "limit; the steps before them, which a forecast replays, hold {} at most. Record it again with a "
          "larger VRAMTRACE_MAX_SIZE, or for fewer steps.",
          whole.allocated.bytes, front.allocated.bytes)};
}

}  // namespace

trace::Result<Stream> BuildStream(const std::string& path, const StreamOptions& options) {
  const trace::Result<std::shared_ptr<trace::TraceFile>> opened = trace::TraceFile::Open(path);
  if (!opened.ok()) return opened.error();
  const std::shared_ptr<trace::TraceFile>& file = opened.value();
  const auto tables = model::ReadTables(*file);
  const auto stacks = std::make_shared<const model::StackTable>(*tables);
  return BuildStream(file, tables, stacks, timeline::ScanTrace(file, tables, stacks), options);
}

trace::Result<Stream> BuildStream(const std::shared_ptr<trace::TraceFile>& file,
                                  const std::shared_ptr<const model::Tables>& tables,
                                  const std::shared_ptr<const model::StackTable>& stacks,
                                  const timeline::Scan& whole, const StreamOptions& options) {
  // A request that was left out cannot be replayed: the steps in front of the first gap are all that counts.
  const uint64_t until = tables->dropped.empty() ? UINT64_MAX : tables->dropped.front().first_sequence - 1;
  const timeline::Scan front =
      until == UINT64_MAX ? timeline::Scan() : timeline::ScanTraceUntil(file, tables, stacks, until);
  const timeline::Scan& scan = until == UINT64_MAX ? whole : front;
  std::optional<uint32_t> device = options.device;
  for (const auto& [index, scanned] : scan.devices) {
    if (options.device || scanned.block_allocations == 0) continue;
    if (!device || scanned.allocated.bytes > scan.devices.at(*device).allocated.bytes) device = index;
  }
  if (!device || !scan.devices.contains(*device) || scan.devices.at(*device).block_allocations == 0) {
    return trace::Error{file->path(), std::nullopt,
                        "holds no blocks of PyTorch's caching allocator" +
                            (options.device ? fmt::format(" on device {}", *options.device) : std::string()) +
                            ", which is what a forecast replays."};
  }
  const auto over_the_run = whole.devices.find(*device);
  if (until != UINT64_MAX && over_the_run != whole.devices.end()) {
    if (auto behind = PeakBehindTheGap(file->path(), over_the_run->second, scan.devices.at(*device))) {
      return *std::move(behind);
    }
  }
  Builder builder(*tables, *stacks, scan, *device);
  attribution::ForEachLife(
      file, tables, stacks, scan, [&](const Life& life) { builder.Add(life); }, nullptr, until);
  const timeline::DeviceScan& scanned = scan.devices.at(*device);
  if (scanned.EndedOutOfMemory() && scanned.refusals.back().caching_allocator) {
    builder.AddRefusal(scanned.refusals.back());
  }
  Stream stream = std::move(builder).Finish();
  FillFacts(*file, *tables, scan, *device, &stream.facts);
  if (until != UINT64_MAX) stream.facts.steps_recorded = whole.completed_steps;
  if (options.batch != 0) stream.facts.batch = options.batch;
  stream.batch = stream.facts.batch;
  SetLawsByRule(&stream);
  const bool finished = stream.facts.ended_out_of_memory ? FinishStep(&stream) : true;
  stream.facts.step_finished = stream.facts.ended_out_of_memory && finished;
  const bool trains = !stream.facts.optimizers.empty();
  stream.facts.whole = finished && (!trains || stream.facts.steps >= 2 || stream.facts.step_finished);
  return stream;
}

}  // namespace vramtrace::forecast
