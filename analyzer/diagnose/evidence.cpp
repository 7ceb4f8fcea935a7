#include "analyzer/diagnose/evidence.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "analyzer/timeline/batch.h"

namespace vramtrace::diagnose {
namespace {

void ReadParameters(Evidence* evidence) {
  const model::Tables& tables = *evidence->source.tables;
  std::set<model::StringId> trained;
  std::set<model::StringId> known;
  for (const timeline::LabelRow& row : evidence->source.scan->labels) {
    if (row.device != evidence->device) continue;
    if (row.kind == v1::Label::KIND_GRADIENT || row.kind == v1::Label::KIND_OPTIMIZER_STATE) {
      trained.insert(row.name);
    }
    if (row.kind != v1::Label::KIND_PARAMETER || !known.insert(row.name).second) continue;
    Parameter parameter;
    parameter.name = tables.Text(row.name);
    const size_t dot = parameter.name.rfind('.');
    if (dot != std::string::npos) parameter.owner = parameter.name.substr(0, dot);
    parameter.dtype = tables.Text(row.dtype);
    parameter.shape = row.shape;
    parameter.bytes = row.bytes;
    evidence->parameters.push_back(std::move(parameter));
  }
  std::set<std::string_view> names;
  for (const model::StringId name : trained) names.insert(tables.Text(name));
  for (Parameter& parameter : evidence->parameters) parameter.trained = names.contains(parameter.name);
}

void ReadInputs(Evidence* evidence) {
  const timeline::Scan& scan = *evidence->source.scan;
  evidence->batch = timeline::BatchOf(scan);
  if (scan.inputs.empty()) return;
  evidence->input_step = scan.inputs.back().step;
  for (const timeline::InputRow& row : scan.inputs) {
    if (row.step == evidence->input_step) evidence->inputs.push_back(row.shape);
  }
}

void ReadLive(Evidence* evidence) {
  const model::Tables& tables = *evidence->source.tables;
  for (const attribution::Allocation& allocation : evidence->breakdown.allocations) {
    LiveRow row;
    row.allocation = &allocation;
    row.index = allocation.block;
    row.live = &evidence->snapshot.blocks[allocation.block];
    row.bytes = row.live->block.TensorBytes();
    row.kind = allocation.verdict.memory_class;
    row.phase = row.live->block.phase;
    row.step = row.live->block.step;
    const model::StackFacts& own = (*evidence->source.stacks)[row.live->block.stack];
    const bool borrowed =
        own.innermost == model::FrameId::kNone && row.live->forward_stack != model::StackId::kNone;
    const model::StackFacts& stack = borrowed ? (*evidence->source.stacks)[row.live->forward_stack] : own;
    row.function = FunctionOf(tables, own.innermost);
    row.site = model::FrameText(tables, stack.site != model::FrameId::kNone ? stack.site : stack.script);
    evidence->live.push_back(std::move(row));
  }
}

const timeline::Peak& PeakOf(const timeline::DeviceScan& scan) {
  if (scan.block_allocations > 0) return scan.allocated;
  return scan.used_ever_known ? scan.used : scan.driver;
}

}  // namespace

std::string FunctionOf(const model::Tables& tables, model::FrameId frame) {
  if (frame == model::FrameId::kNone) return {};
  return std::string(tables.Text(tables.codes[tables.frames[frame].code].qualified_name));
}

bool HasFrame(const Evidence& evidence, model::StackId stack, std::string_view part) {
  const model::Tables& tables = *evidence.source.tables;
  for (; stack != model::StackId::kNone; stack = tables.stacks[stack].parent) {
    const model::CodeRow& code = tables.codes[tables.frames[tables.stacks[stack].frame].code];
    if (tables.Text(code.qualified_name).find(part) != std::string_view::npos) return true;
    if (tables.Text(code.file).find(part) != std::string_view::npos) return true;
  }
  return false;
}

std::vector<uint64_t> Evidence::TokenCounts() const {
  std::set<uint64_t> counts;
  for (const std::vector<int64_t>& shape : inputs) {
    if (shape.size() < 2 || shape[0] <= 0 || shape[1] <= 0) continue;
    const auto rows = static_cast<uint64_t>(shape[0]);
    const auto length = static_cast<uint64_t>(shape[1]);
    if (rows > UINT32_MAX || length > UINT32_MAX) continue;
    counts.insert(rows * length);
    if (length > 1) counts.insert(rows * (length - 1));
  }
  return {counts.begin(), counts.end()};
}

uint64_t Evidence::BytesOf(MemoryClass kind) const {
  return breakdown.classes[static_cast<size_t>(kind)].tensor_bytes;
}

uint64_t Evidence::Term(std::string_view key) const {
  for (const attribution::Term& term : breakdown.identity.terms) {
    if (term.key == key) return static_cast<uint64_t>(std::max<int64_t>(0, term.bytes));
  }
  return 0;
}

uint64_t Evidence::TrainedBytes() const {
  uint64_t bytes = 0;
  for (const Parameter& parameter : parameters) bytes += parameter.trained ? parameter.bytes : 0;
  return bytes;
}

std::string_view Evidence::Environment(std::string_view name) const {
  for (const std::string& variable : source.tables->process.environment()) {
    const std::string_view text = variable;
    if (text.size() > name.size() && text.starts_with(name) && text[name.size()] == '=') {
      return text.substr(name.size() + 1);
    }
  }
  return {};
}

Evidence Collect(const Source& source, uint32_t device) {
  Evidence evidence;
  evidence.source = source;
  evidence.device = device;
  evidence.scan = &source.scan->devices.at(device);
  evidence.refused = evidence.scan->EndedOutOfMemory();
  const uint64_t until = evidence.refused ? evidence.scan->refusals.back().instant.sequence : UINT64_MAX;
  evidence.at = evidence.refused ? evidence.scan->refusals.back().instant : PeakOf(*evidence.scan).instant;
  evidence.snapshot =
      timeline::TakeSnapshots(source.file, source.tables, source.stacks, {{device, evidence.at, until}})
          .front();
  evidence.breakdown =
      attribution::Explain(*source.tables, *source.stacks, *source.scan, evidence.snapshot, evidence.refused);
  if (evidence.refused) {
    evidence.refusal = attribution::ExplainRefusal(evidence.scan->refusals.back(), evidence.snapshot,
                                                   evidence.breakdown.free_space);
  }
  evidence.history = ReadHistory(source.file, source.tables, source.stacks, device, until);
  evidence.used = evidence.breakdown.identity.device_used;
  evidence.allocated = evidence.snapshot.allocated;
  evidence.total = evidence.scan->total_bytes;
  const auto known = source.tables->devices.find(device);
  if (evidence.total == 0 && known != source.tables->devices.end()) {
    evidence.total = known->second.total_bytes();
  }
  for (const std::string_view name : {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"}) {
    const std::string_view text = evidence.Environment(name);
    if (text.find("expandable_segments:True") != std::string_view::npos) evidence.expandable_segments = true;
    if (text.find("max_split_size_mb") != std::string_view::npos) evidence.settings_split = true;
  }
  ReadParameters(&evidence);
  ReadInputs(&evidence);
  ReadLive(&evidence);
  return evidence;
}

bool LayerOf(std::string_view path, std::string* stem, uint64_t* number) {
  size_t begin = 0;
  while (begin <= path.size()) {
    const size_t dot = std::min(path.find('.', begin), path.size());
    const std::string_view part = path.substr(begin, dot - begin);
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), *number);
    if (!part.empty() && error == std::errc() && end == part.data() + part.size()) {
      *stem = path.substr(0, begin);
      return true;
    }
    begin = dot + 1;
  }
  return false;
}

}  // namespace vramtrace::diagnose
