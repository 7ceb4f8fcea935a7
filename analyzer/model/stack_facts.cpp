#include "analyzer/model/stack_facts.h"

#include <fmt/format.h>

namespace vramtrace::model {
namespace {

enum class Match : uint8_t { kEnds, kContains };

struct FrameRule {
  std::string_view file_end;
  Match match;
  std::string_view name;
  FrameHint hint;
};

constexpr FrameRule kFrameRules[] = {
#define VRAMTRACE_FRAME_RULE(file_end, match, name, hint) {file_end, Match::match, name, FrameHint::hint},
#include "analyzer/model/frame_rules.def"
#undef VRAMTRACE_FRAME_RULE
};

// "Optimizer.zero_grad" is the end of "torch.Optimizer.zero_grad" but "grad" is not.
bool EndsAtDot(std::string_view text, std::string_view end) {
  if (!text.ends_with(end)) return false;
  return text.size() == end.size() || text[text.size() - end.size() - 1] == '.';
}

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

FrameHint HintOf(std::string_view file, std::string_view name) {
  for (const FrameRule& rule : kFrameRules) {
    if (!file.ends_with(rule.file_end)) continue;
    const bool matches = rule.match == Match::kEnds ? EndsAtDot(name, rule.name) : Contains(name, rule.name);
    if (matches) return rule.hint;
  }
  return FrameHint::kNone;
}

// Facts of one frame alone; a code object's are worked out once.
struct CodeFacts {
  bool known = false;
  FrameHint hint = FrameHint::kNone;
  bool installed = false;  // in site-packages, dist-packages or the standard library
  bool torch_or_standard = false;
  bool backward_call = false;
  bool module_apply = false;
  bool optimizer_init = false;
  bool constructor = false;
  bool collective = false;
  bool makes_buckets = false;  // says so of what it allocates itself, not of what it calls
};

bool InStandardLibrary(std::string_view file) {
  if (file.starts_with("<frozen")) return true;
  const size_t lib = file.rfind("/lib/python3");
  if (lib == std::string_view::npos) return false;
  return !Contains(file.substr(lib), "/site-packages/") && !Contains(file.substr(lib), "/dist-packages/");
}

bool InTorch(std::string_view file) { return Contains(file, "/torch/") || file.starts_with("torch/"); }

CodeFacts FactsOfCode(std::string_view file, std::string_view name) {
  CodeFacts facts;
  facts.known = true;
  facts.hint = HintOf(file, name);
  const bool standard = InStandardLibrary(file);
  const bool torch = InTorch(file);
  facts.installed = standard || Contains(file, "/site-packages/") || Contains(file, "/dist-packages/");
  facts.torch_or_standard = standard || torch;
  facts.backward_call = EndsAtDot(name, "Tensor.backward") ||
                        (file.ends_with("torch/autograd/__init__.py") && EndsAtDot(name, "backward"));
  facts.module_apply = EndsAtDot(name, "Module._apply");
  facts.optimizer_init = EndsAtDot(name, "_init_group");
  facts.constructor = EndsAtDot(name, "__init__");
  facts.collective = Contains(file, "torch/distributed/distributed_c10d.py") ||
                     EndsAtDot(name, "DistributedDataParallel.__init__") ||
                     EndsAtDot(name, "DistributedDataParallel._ddp_init_helper");
  // Gathered parameters and what is reduced, of the second fully sharded data parallel.
  facts.collective |= file.ends_with("_fully_shard/_fsdp_collectives.py") ||
                      EndsAtDot(name, "FSDPParam.init_all_gather_outputs") ||
                      (file.ends_with("_fully_shard/_fsdp_param.py") && name == "alloc_storage");
  facts.makes_buckets = EndsAtDot(name, "DistributedDataParallel._pre_forward");
  return facts;
}

void AddFrame(const FrameRow& frame, FrameId id, const CodeFacts& code, StackFacts* facts) {
  if (code.hint != FrameHint::kNone) facts->hint = code.hint;
  if (frame.module_object != 0) {
    facts->module_object = frame.module_object;
    // A closure given to Optimizer.step (LBFGS) runs forwards inside it.
    if (facts->hint == FrameHint::kOptimizer) facts->hint = FrameHint::kNone;
  }
  // Reentrant checkpointing runs a backward of its own behind the forward that it runs again.
  if (code.backward_call && facts->hint == FrameHint::kRecompute) facts->hint = FrameHint::kNone;
  facts->in_backward_call |= code.backward_call;
  facts->in_module_apply |= code.module_apply;
  facts->in_optimizer_init |= code.optimizer_init;
  facts->in_constructor |= code.constructor;
  facts->in_collective |= code.collective;
  facts->makes_buckets = code.makes_buckets;
  facts->innermost = id;
  if (!code.torch_or_standard) facts->site = id;
  if (!code.installed && !code.torch_or_standard) facts->script = id;
}

}  // namespace

StackTable::StackTable(const Tables& tables) {
  const uint32_t count = tables.stacks.size();
  facts_.resize(count);
  std::vector<CodeFacts> codes(tables.codes.size());
  // Parents come before their children (checked when the table was read), so one pass is enough.
  for (uint32_t id = 1; id < count; ++id) {
    const StackRow& stack = tables.stacks[StackId{id}];
    StackFacts facts = facts_[trace::Raw(stack.parent)];
    const FrameRow& frame = tables.frames[stack.frame];
    if (frame.code != CodeId::kNone) {
      const uint32_t raw = trace::Raw(frame.code);
      CodeFacts unknown;
      CodeFacts& code = raw < codes.size() ? codes[raw] : unknown;
      if (!code.known) {
        const CodeRow& row = tables.codes[frame.code];
        code = FactsOfCode(tables.Text(row.file), tables.Text(row.qualified_name));
      }
      AddFrame(frame, stack.frame, code, &facts);
    }
    facts_[id] = facts;
  }
}

Phase PhaseOf(const StackFacts& facts, const trace::AutogradPosition& autograd, bool seen_forward) {
  switch (facts.hint) {
    case FrameHint::kOptimizer:
      return Phase::kOptimizer;
    case FrameHint::kZeroGrad:
      return Phase::kZeroGrad;
    case FrameHint::kClip:
      return Phase::kClip;
    case FrameHint::kRecompute:
      return Phase::kRecompute;
    default:
      break;
  }
  if (autograd.operator_name != StringId::kNone) {
    // A module's frame under a running node is a forward that runs again, whatever checkpointing was used.
    return facts.module_object != 0 ? Phase::kRecompute : Phase::kBackward;
  }
  if (facts.hint == FrameHint::kSave) return Phase::kSave;
  if (facts.hint == FrameHint::kLoad) return Phase::kLoad;
  if (facts.module_object != 0) {
    return facts.hint == FrameHint::kEvaluate ? Phase::kEvaluate : Phase::kForward;
  }
  return seen_forward ? Phase::kScript : Phase::kLoad;
}

bool IsTorchOrStandard(const Tables& tables, FrameId frame) {
  const std::string_view file = tables.Text(tables.codes[tables.frames[frame].code].file);
  return InTorch(file) || InStandardLibrary(file);
}

std::string FrameText(const Tables& tables, FrameId frame) {
  if (!tables.frames.Has(frame)) return {};
  const FrameRow& row = tables.frames[frame];
  const CodeRow& code = tables.codes[row.code];
  const std::string_view file = tables.Text(code.file);
  const size_t last = file.rfind('/');
  const size_t before = last == std::string_view::npos || last == 0 ? last : file.rfind('/', last - 1);
  const bool installed = Contains(file, "-packages/");
  const size_t cut = installed ? before : last;
  const std::string_view shown = cut == std::string_view::npos ? file : file.substr(cut + 1);
  return fmt::format("{}:{} ({})", shown, row.line, tables.Text(code.qualified_name));
}

std::string_view PhaseName(Phase phase) {
  switch (phase) {
    case Phase::kLoad:
      return "load";
    case Phase::kForward:
      return "forward";
    case Phase::kBackward:
      return "backward";
    case Phase::kRecompute:
      return "backward (recompute)";
    case Phase::kOptimizer:
      return "optimizer";
    case Phase::kZeroGrad:
      return "optimizer (zero_grad)";
    case Phase::kClip:
      return "optimizer (gradient clipping)";
    case Phase::kEvaluate:
      return "evaluate";
    case Phase::kSave:
      return "save";
    case Phase::kScript:
      return "between phases";
  }
  return "?";
}

}  // namespace vramtrace::model
