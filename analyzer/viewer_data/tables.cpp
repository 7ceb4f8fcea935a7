#include "analyzer/viewer_data/tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyzer/model/stack_facts.h"

namespace vramtrace::viewer_data {

namespace {

// "f.<locals>.g.wrapper": what is defined inside of a function, by the names that decorators give it.
bool IsInnerWrapper(std::string_view function) {
  constexpr std::string_view kLocals = "<locals>.";
  const size_t locals = function.find(kLocals);
  if (locals == std::string_view::npos) return false;
  for (size_t at = locals + kLocals.size();; ++at) {
    const std::string_view name = function.substr(at);
    for (const std::string_view begin : {"wrap", "_wrap", "inner", "decorate_context", "_use_grad"}) {
      if (name.starts_with(begin)) return true;
    }
    at = function.find('.', at);
    if (at == std::string_view::npos) return false;
  }
}

}  // namespace

bool IsWrapper(std::string_view function, std::string_view file) {
  if (file.find("-packages/") == std::string_view::npos) return false;
  const std::string_view last = function.substr(function.rfind('.') + 1);
  return last == "_call_impl" || last == "_wrapped_call_impl" || function.starts_with("_use_grad") ||
         function.find(".profile_hook_step") != std::string_view::npos || IsInnerWrapper(function);
}

uint32_t UsedStacks::Id(model::StackId stack) {
  // From the leaf up to the first stack that is known already, then down again: no recursion over hostile
  // data, and a cycle ends where it began.
  std::vector<uint32_t> missing;
  uint32_t raw = trace::Raw(stack);
  while (raw != 0 && tables_.stacks.Has(model::StackId{raw}) && !stack_ids_.contains(raw)) {
    stack_ids_[raw] = 0;
    missing.push_back(raw);
    raw = trace::Raw(tables_.stacks[model::StackId{raw}].parent);
  }
  const auto known = stack_ids_.find(raw);
  uint32_t parent = known == stack_ids_.end() ? 0 : known->second;
  for (auto it = missing.rbegin(); it != missing.rend(); ++it) {
    stacks_.push_back({parent, FrameId(tables_.stacks[model::StackId{*it}].frame)});
    parent = static_cast<uint32_t>(stacks_.size() - 1);
    stack_ids_[*it] = parent;
  }
  return parent;
}

uint32_t UsedStacks::FrameId(model::FrameId frame) {
  const uint32_t raw = trace::Raw(frame);
  if (raw == 0 || !tables_.frames.Has(frame)) return 0;
  const auto known = frame_ids_.find(raw);
  if (known != frame_ids_.end()) return known->second;
  const model::FrameRow& row = tables_.frames[frame];
  Frame made;
  if (row.code == model::CodeId::kNone) {
    const model::BinaryRow& binary = tables_.binaries[row.binary];
    const std::string_view path = tables_.Text(binary.path);
    made.function =
        strings_->Id(fmt::format("{}+{:#x}", path.substr(path.rfind('/') + 1), row.pc - binary.load_bias));
    made.file = strings_->Id(path);
  } else {
    const model::CodeRow& code = tables_.codes[row.code];
    const std::string text = model::FrameText(tables_, frame);
    made.function = strings_->Id(tables_.Text(code.qualified_name));
    made.place = strings_->Id(text.substr(0, text.rfind(" (")));
    made.file = strings_->Id(fmt::format("{}:{}", tables_.Text(code.file), row.line));
  }
  const std::vector<std::string>& texts = strings_->texts();
  made.plumbing = made.place == 0 || IsWrapper(texts[made.function], texts[made.file]) ? 1 : 0;
  frames_.push_back(made);
  return frame_ids_[raw] = static_cast<uint32_t>(frames_.size() - 1);
}

void UsedStacks::Write(Columns* columns) const {
  const auto write = [&](std::string_view name, const auto& rows, auto value) {
    std::vector<uint32_t> values;
    values.reserve(rows.size());
    for (const auto& row : rows) values.push_back(value(row));
    columns->Add(name, values);
  };
  write("stack.parent", stacks_, [](const Stack& stack) { return stack.parent; });
  write("stack.frame", stacks_, [](const Stack& stack) { return stack.frame; });
  write("frame.function", frames_, [](const Frame& frame) { return frame.function; });
  write("frame.place", frames_, [](const Frame& frame) { return frame.place; });
  write("frame.file", frames_, [](const Frame& frame) { return frame.file; });
  std::vector<uint8_t> plumbing;
  for (const Frame& frame : frames_) plumbing.push_back(frame.plumbing);
  columns->Add("frame.plumbing", plumbing);
}

}  // namespace vramtrace::viewer_data
