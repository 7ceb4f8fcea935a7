#include "analyzer/attribution/breakdown.h"

#include <algorithm>

#include "analyzer/attribution/identity.h"
#include "analyzer/attribution/rules.h"
#include "analyzer/symbolize/names.h"

namespace vramtrace::attribution {
namespace {

using timeline::LabelRow;
using timeline::LiveBlock;

void AddNames(const model::Tables& tables, const BlockLabels& labels, Allocation* allocation) {
  for (const LabelRow* row : labels.rows) {
    // Weaker kinds on the same bytes (a parameter that is also a state) are no aliases.
    if (row->kind != labels.rows.front()->kind) break;
    const std::string_view name = tables.Text(row->name);
    if (!name.empty()) allocation->names.emplace_back(name);
  }
  if (labels.rows.empty()) return;
  const LabelRow& first = *labels.rows.front();
  allocation->state_key = tables.Text(first.state_key);
  allocation->dtype = tables.Text(first.dtype);
  allocation->shape = first.shape;
}

// Autocast makes half-width copies of single-precision weights in forward and saves them for backward.
void NameAutocastCopy(const Surroundings& around, const BlockFacts& facts, Allocation* allocation) {
  if (!allocation->names.empty() || facts.block().phase != model::Phase::kForward || !facts.has_module)
    return;
  const ParameterSize* parameter =
      around.parameters->Find(facts.module_path, facts.block().TensorBytes(), 1, 2);
  if (parameter == nullptr || around.tables->Text(parameter->dtype) != "float32") return;
  allocation->copy_of = around.tables->Text(parameter->name);
}

void SetModule(const Surroundings& around, BlockFacts* facts, Allocation* allocation) {
  const LiveBlock& live = *facts->live;
  ModuleRef module = ModuleOf(*around.tables, *facts->stack, live.block.sequence);
  if (!module.known && live.forward_stack != model::StackId::kNone) {
    module = ModuleOf(*around.tables, (*around.stacks)[live.forward_stack], live.forward_sequence);
    module.from_autograd = module.known;
  }
  facts->has_module = module.known;
  facts->module_from_autograd = module.from_autograd;
  facts->module_path = module.path;
  allocation->has_module = module.known;
  allocation->module_path = std::move(module.path);
  allocation->module_class = std::move(module.class_name);
}

}  // namespace

Allocation ExplainBlock(const Surroundings& around, size_t index, const BlockLabels& labels) {
  const LiveBlock& live = around.snapshot->blocks[index];
  Allocation allocation;
  allocation.block = index;
  BlockFacts facts;
  facts.around = &around;
  facts.live = &live;
  facts.labels = &labels;
  facts.stack = &(*around.stacks)[live.block.stack];
  facts.free_stack = &(*around.stacks)[live.free_stack];
  const uint32_t stack = trace::Raw(live.block.stack);
  if (stack < around.scan->sites.size()) facts.site = around.scan->sites[stack];
  const uint32_t frame = trace::Raw(facts.stack->innermost);
  const bool none = facts.site.outlived_forward + facts.site.died_in_forward == 0;
  if (none && frame < around.scan->frame_sites.size()) facts.site = around.scan->frame_sites[frame];
  SetModule(around, &facts, &allocation);
  AddNames(*around.tables, labels, &allocation);
  allocation.verdict = Classify(facts);
  NameAutocastCopy(around, facts, &allocation);
  const model::StringId operator_name = live.block.autograd.operator_name;
  if (operator_name != model::StringId::kNone) {
    allocation.operator_name = symbolize::OperatorName(around.tables->Text(operator_name));
  }
  return allocation;
}

ModuleRef ModuleOf(const model::Tables& tables, const model::StackFacts& stack, uint64_t sequence) {
  ModuleRef ref;
  if (stack.module_object == 0) return ref;
  const model::ModuleName* name = tables.modules.Find(stack.module_object, sequence);
  if (name == nullptr) return ref;
  ref.known = true;
  ref.path = tables.Text(name->path);
  ref.class_name = tables.Text(name->class_name);
  return ref;
}

Breakdown Explain(const model::Tables& tables, const model::StackTable& stacks, const timeline::Scan& scan,
                  const timeline::Snapshot& snapshot, bool at_out_of_memory) {
  const ParameterSizes parameters(tables, scan);
  const auto device = tables.devices.find(snapshot.request.device);
  Surroundings around{
      &tables,
      &stacks,
      &scan,
      &snapshot,
      &parameters,
      at_out_of_memory,
      CublasWorkspaceBytes(tables.process, device == tables.devices.end() ? nullptr : &device->second)};
  const std::vector<BlockLabels> labels = JoinLabels(scan, snapshot);

  Breakdown breakdown;
  for (size_t i = 0; i < snapshot.blocks.size(); ++i) {
    const timeline::Block& block = snapshot.blocks[i].block;
    breakdown.allocations.push_back(ExplainBlock(around, i, labels[i]));
    const Verdict& verdict = breakdown.allocations.back().verdict;
    ClassTotal& total = breakdown.classes[static_cast<size_t>(verdict.memory_class)];
    total.tensor_bytes += block.TensorBytes();
    total.block_bytes += block.bytes;
    ++total.blocks;
    if (verdict.confidence != Confidence::kHigh) total.unsure_bytes += block.TensorBytes();
    breakdown.rounding += block.bytes - block.TensorBytes();
  }
  std::stable_sort(breakdown.allocations.begin(), breakdown.allocations.end(),
                   [&](const Allocation& a, const Allocation& b) {
                     return snapshot.blocks[a.block].block.TensorBytes() >
                            snapshot.blocks[b.block].block.TensorBytes();
                   });
  breakdown.identity = MakeIdentity(tables, snapshot, breakdown.classes, breakdown.rounding);
  breakdown.free_space = MeasureFreeSpace(snapshot);
  return breakdown;
}

}  // namespace vramtrace::attribution
