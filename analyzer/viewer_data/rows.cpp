#include "analyzer/viewer_data/rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analyzer/report/title.h"

namespace vramtrace::viewer_data {

void Rows::Add(const attribution::Life& life) {
  const timeline::Block& block = life.live.block;
  const attribution::Allocation& explained = life.explained;
  device_.push_back(static_cast<uint8_t>(life.device));
  class_.push_back(static_cast<uint8_t>(explained.verdict.memory_class));
  confidence_.push_back(static_cast<uint8_t>(explained.verdict.confidence));
  phase_.push_back(static_cast<uint8_t>(block.phase));
  allocated_.push_back(life.allocated);
  freed_.push_back(life.freed);
  step_.push_back(static_cast<uint32_t>(block.step));
  stack_.push_back(stacks_->Id(block.stack));
  forward_stack_.push_back(stacks_->Id(life.live.forward_stack));
  title_.push_back(strings_->Id(report::TitleOf(explained)));
  names_.push_back(strings_->Id(fmt::format("{}", fmt::join(explained.names, ", "))));
  // "has no module" and "the root, whose path is empty" differ: the root's class is never empty.
  module_.push_back(strings_->Id(explained.module_path));
  module_class_.push_back(strings_->Id(explained.has_module && explained.module_class.empty()
                                           ? std::string_view("Module")
                                           : std::string_view(explained.module_class)));
  evidence_.push_back(strings_->Id(explained.verdict.evidence));
  rule_.push_back(strings_->Id(explained.verdict.rule));
  operator_.push_back(strings_->Id(explained.operator_name));
  dtype_.push_back(strings_->Id(explained.dtype));
  shape_.push_back(
      strings_->Id(explained.dtype.empty() ? "" : fmt::format("[{}]", fmt::join(explained.shape, ", "))));
  address_.push_back(static_cast<double>(block.address));
  bytes_.push_back(static_cast<double>(block.TensorBytes()));
  block_bytes_.push_back(static_cast<double>(block.bytes));
  sequence_.push_back(static_cast<double>(block.sequence));
}

void Rows::Write(Columns* columns) const {
  columns->Add("block.device", device_);
  columns->Add("block.class", class_);
  columns->Add("block.confidence", confidence_);
  columns->Add("block.phase", phase_);
  columns->Add("block.allocated", allocated_);
  columns->Add("block.freed", freed_);
  columns->Add("block.step", step_);
  columns->Add("block.stack", stack_);
  columns->Add("block.forward_stack", forward_stack_);
  columns->Add("block.title", title_);
  columns->Add("block.names", names_);
  columns->Add("block.module", module_);
  columns->Add("block.module_class", module_class_);
  columns->Add("block.evidence", evidence_);
  columns->Add("block.rule", rule_);
  columns->Add("block.operator", operator_);
  columns->Add("block.dtype", dtype_);
  columns->Add("block.shape", shape_);
  columns->Add("block.address", address_);
  columns->Add("block.bytes", bytes_);
  columns->Add("block.block_bytes", block_bytes_);
  columns->Add("block.sequence", sequence_);
}

}  // namespace vramtrace::viewer_data
