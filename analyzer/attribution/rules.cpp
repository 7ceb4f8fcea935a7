#include "analyzer/attribution/rules.h"

#include <fmt/format.h>

#include <cstdlib>

namespace vramtrace::attribution {
namespace {

using model::Phase;
using timeline::NextPhase;

bool Say(Verdict* verdict, MemoryClass memory_class, Confidence confidence, std::string evidence) {
  verdict->memory_class = memory_class;
  verdict->confidence = confidence;
  verdict->evidence = std::move(evidence);
  return true;
}

bool ByLabel(const BlockFacts& facts, Verdict* verdict) {
  if (facts.labels->rows.empty()) return false;
  switch (facts.labels->rows.front()->kind) {
    case v1::Label::KIND_OPTIMIZER_STATE:
      return Say(verdict, MemoryClass::kOptimizerState, Confidence::kHigh, "named by the optimizer's state");
    case v1::Label::KIND_GRADIENT:
      return Say(verdict, MemoryClass::kGradient, Confidence::kHigh, "named as a parameter's gradient");
    case v1::Label::KIND_PARAMETER:
      return Say(verdict, MemoryClass::kWeight, Confidence::kHigh, "named as a module's parameter");
    case v1::Label::KIND_BUFFER:
      return Say(verdict, MemoryClass::kBuffer, Confidence::kHigh, "named as a module's buffer");
    case v1::Label::KIND_INPUT:
      return Say(verdict, MemoryClass::kInput, Confidence::kHigh, "passed to the root module");
    default:
      return false;
  }
}

bool ByInput(const BlockFacts& facts, Verdict* verdict) {
  if (!facts.block().is_input) return false;
  return Say(verdict, MemoryClass::kInput, Confidence::kHigh, "passed to the root module");
}

bool ByCollective(const BlockFacts& facts, Verdict* verdict) {
  if (facts.stack->makes_buckets) {
    return Say(verdict, MemoryClass::kCommunication, Confidence::kHigh,
               "a gradient bucket of DistributedDataParallel");
  }
  if (!facts.stack->in_collective) return false;
  // What a reduction leaves behind is the shard's gradient.
  if (facts.block().phase == Phase::kBackward && facts.live->outlived_step) return false;
  return Say(verdict, MemoryClass::kCommunication, Confidence::kMedium, "allocated by torch.distributed");
}

// cuBLAS takes its workspace through the caching allocator: kept for ever in some versions, given back by the
// next event in others. 33,554,432 bytes is also the size of many tensors, so a long life must show it.
bool ByWorkspaceSize(const BlockFacts& facts, Verdict* verdict) {
  constexpr uint64_t kOldWorkspace =
      8'519'680;  // 2 x 4096 KiB + 8 x 16 KiB: no tensor has this size by chance
  constexpr uint64_t kLtWorkspace = 1024 * 1024;
  const uint64_t bytes = facts.block().TensorBytes();
  const Phase phase = facts.block().phase;
  const bool computes = phase == Phase::kForward || phase == Phase::kBackward || phase == Phase::kRecompute ||
                        phase == Phase::kScript;
  if (!computes) return false;
  if (bytes == kOldWorkspace) {
    return Say(verdict, MemoryClass::kWorkspace, Confidence::kHigh, "the size of a cuBLAS workspace");
  }
  const bool cublas = bytes == facts.around->workspace_bytes;
  if (cublas && facts.FreedAtOnce()) {
    return Say(verdict, MemoryClass::kWorkspace, Confidence::kMedium,
               "the size of a cuBLAS workspace, given back at once");
  }
  // Logits and gradients of that size may be kept over a step too, but they go.
  const bool kept = facts.live->outlived_step && !facts.live->freed;
  if (cublas && kept) {
    return Say(verdict, MemoryClass::kWorkspace, Confidence::kMedium,
               "the size of a cuBLAS workspace, kept over steps");
  }
  if (bytes == kLtWorkspace && facts.FreedAtOnce()) {
    return Say(verdict, MemoryClass::kWorkspace, Confidence::kMedium,
               "the size of a cuBLASLt workspace, given back at once");
  }
  return false;
}

bool ByOptimizerPhase(const BlockFacts& facts, Verdict* verdict) {
  if (facts.block().phase != Phase::kOptimizer) return false;
  if (facts.stack->in_optimizer_init) {
    return Say(verdict, MemoryClass::kOptimizerState, Confidence::kMedium,
               "made where the optimizer makes its state");
  }
  if (facts.live->outlived_step) {
    return Say(verdict, MemoryClass::kOptimizerState, Confidence::kMedium,
               "allocated in an optimizer step and kept after it");
  }
  return Say(verdict, MemoryClass::kTemporary, Confidence::kHigh,
             "allocated in an optimizer step and not kept");
}

bool ByServicePhase(const BlockFacts& facts, Verdict* verdict) {
  switch (facts.block().phase) {
    case Phase::kClip:
    case Phase::kZeroGrad:
      return Say(verdict, MemoryClass::kTemporary, Confidence::kHigh,
                 fmt::format("allocated in {}", model::PhaseName(facts.block().phase)));
    case Phase::kSave:
      return Say(verdict, MemoryClass::kSaveCopy, Confidence::kMedium,
                 "allocated while a checkpoint was written");
    default:
      return false;
  }
}

// A gradient has its name only once an optimizer step begins. Before that, its size and its end tell.
bool ByUnnamedGradient(const BlockFacts& facts, Verdict* verdict) {
  if (facts.block().phase != Phase::kBackward) return false;
  if (facts.live->freed && facts.live->free_phase == Phase::kZeroGrad) {
    return Say(verdict, MemoryClass::kGradient, Confidence::kMedium,
               "allocated in backward and freed by zero_grad");
  }
  if (facts.live->outlived_step) {
    return Say(verdict, MemoryClass::kGradient, Confidence::kMedium,
               "allocated in backward and alive when an optimizer step ended");
  }
  if (facts.live->freed || !facts.has_module) return false;
  const ParameterSize* parameter =
      facts.around->parameters->Find(facts.module_path, facts.block().TensorBytes());
  if (parameter == nullptr) return false;
  return Say(verdict, MemoryClass::kGradient, Confidence::kMedium,
             fmt::format("allocated in backward with the size of {}, and kept",
                         facts.around->tables->Text(parameter->name)));
}

bool ByBackward(const BlockFacts& facts, Verdict* verdict) {
  if (facts.block().phase != Phase::kBackward) return false;
  const Confidence confidence = facts.live->freed ? Confidence::kHigh : Confidence::kMedium;
  return Say(verdict, MemoryClass::kTemporary, confidence, "allocated in backward and no gradient");
}

bool ByRecompute(const BlockFacts& facts, Verdict* verdict) {
  if (facts.block().phase != Phase::kRecompute) return false;
  if (facts.live->freed && facts.live->free_phase == Phase::kRecompute) {
    return Say(verdict, MemoryClass::kTemporary, Confidence::kHigh, "allocated and freed while recomputing");
  }
  return Say(verdict, MemoryClass::kActivation, Confidence::kHigh, "recomputed for the backward pass");
}

// Forward results whose end is known: what outlived the forward into backward was saved for it, unless it was
// the program that let it go.
bool ByForwardLife(const BlockFacts& facts, Verdict* verdict) {
  const Phase phase = facts.block().phase;
  if (phase != Phase::kForward && phase != Phase::kEvaluate) return false;
  const timeline::LiveBlock& live = *facts.live;
  if (live.freed && facts.ReleasedByScript()) {
    return Say(verdict, MemoryClass::kOutput,
               live.backward_followed ? Confidence::kHigh : Confidence::kMedium,
               "a forward result that a variable of the program kept");
  }
  if (live.backward_followed && live.outlived_step && !live.freed) {
    return Say(verdict, MemoryClass::kOutput, Confidence::kMedium,
               "a forward result kept over optimizer steps");
  }
  if (live.backward_followed) {
    return Say(verdict, MemoryClass::kActivation, live.freed ? Confidence::kHigh : Confidence::kMedium,
               "allocated in forward and alive in backward");
  }
  if (live.freed)
    return Say(verdict, MemoryClass::kTemporary, Confidence::kHigh, "allocated and freed in forward");
  return false;
}

// Forward results without an end: the run died before its backward pass. What the call site did before tells,
// unless the block is already older than any that it freed in forward.
bool ByForwardSite(const BlockFacts& facts, Verdict* verdict) {
  const Phase phase = facts.block().phase;
  if (phase != Phase::kForward && phase != Phase::kEvaluate) return false;
  const timeline::SiteLives& site = facts.site;
  const uint32_t seen = site.outlived_forward + site.died_in_forward;
  const uint64_t age = facts.around->snapshot->request.instant.sequence - facts.block().sequence;
  if (seen > 0 && age > site.longest_death) {
    return Say(verdict, MemoryClass::kActivation, Confidence::kMedium,
               site.died_in_forward == 0 ? "the same call site saved all its blocks before"
                                         : "older than any block that the same call site freed in forward");
  }
  if (seen > 0) {
    const bool saved = site.outlived_forward >= site.died_in_forward;
    const bool mixed = site.outlived_forward > 0 && site.died_in_forward > 0;
    return Say(
        verdict, saved ? MemoryClass::kActivation : MemoryClass::kTemporary,
        mixed ? Confidence::kLow : Confidence::kMedium,
        fmt::format("the same call site {} {} of {} blocks before", saved ? "saved" : "freed in forward",
                    saved ? site.outlived_forward : site.died_in_forward, seen));
  }
  const model::StackFacts& now = (*facts.around->stacks)[facts.around->snapshot->request.instant.stack];
  const bool still_running = now.module_object != 0 && now.module_object == facts.stack->module_object;
  return Say(verdict, MemoryClass::kActivation, still_running ? Confidence::kLow : Confidence::kMedium,
             still_running
                 ? "allocated by the module that was running; no backward pass followed to prove it saved"
                 : "outlived its module's call; no backward pass followed to prove it saved");
}

// The program's own code between the phases.
bool ByScript(const BlockFacts& facts, Verdict* verdict) {
  if (facts.block().phase != Phase::kScript) return false;
  const timeline::LiveBlock& live = *facts.live;
  if (facts.stack->in_backward_call) {
    return Say(verdict, MemoryClass::kTemporary, Confidence::kHigh, "allocated by the call of backward()");
  }
  if (live.next == NextPhase::kForward) {
    if (live.freed && live.outlived_step && !live.backward_followed) return false;
    return Say(verdict, MemoryClass::kInput, Confidence::kMedium, "made by the program before a forward");
  }
  if (live.next == NextPhase::kBackward) {
    if (!live.backward_followed) {
      return Say(verdict, MemoryClass::kTemporary, Confidence::kHigh,
                 "made after the forward and freed before backward");
    }
    if (live.freed && facts.ReleasedByScript()) {
      return Say(verdict, MemoryClass::kOutput, Confidence::kHigh,
                 "made after the forward; a variable kept it");
    }
    return Say(verdict, MemoryClass::kActivation, Confidence::kHigh,
               "made after the forward and alive in backward: the loss's own saved tensors");
  }
  if (facts.around->at_out_of_memory && !live.freed) {
    return Say(verdict, MemoryClass::kActivation, Confidence::kLow,
               "made after the forward; no backward pass followed to prove it saved");
  }
  return false;
}

bool ByLoad(const BlockFacts& facts, Verdict* verdict) {
  if (facts.block().phase != Phase::kLoad) return false;
  if (facts.stack->in_module_apply && facts.live->freed && facts.live->free_phase == Phase::kLoad &&
      !facts.live->outlived_step) {
    return Say(verdict, MemoryClass::kTemporary, Confidence::kHigh,
               "moved to the device with its module and replaced before the first forward");
  }
  if (facts.stack->in_module_apply) {
    return Say(verdict, MemoryClass::kWeight, Confidence::kMedium,
               "moved to the device with its module; no name is known");
  }
  const timeline::LiveBlock& live = *facts.live;
  const bool kept =
      !live.freed || (live.outlived_step && live.free_sequence > facts.around->scan->last_step_end);
  // A program without a forward has no weights to speak of: what it keeps stays unknown.
  if (live.next != NextPhase::kForward && !facts.stack->in_constructor) return false;
  if (!kept) {
    if (live.next != NextPhase::kForward) return false;
    return Say(verdict, MemoryClass::kInput, Confidence::kMedium,
               "made by the program before the first forward");
  }
  if (!facts.around->parameters->empty()) {
    return Say(verdict, MemoryClass::kBuffer, Confidence::kLow,
               "made before the first forward and kept, but no parameter");
  }
  return Say(verdict, MemoryClass::kWeight,
             facts.stack->in_constructor ? Confidence::kMedium : Confidence::kLow,
             facts.stack->in_constructor ? "made by a constructor before the first forward, and kept"
                                         : "made before the first forward and kept, as weights are");
}

constexpr Rule kRules[] = {
    {"label", ByLabel},
    {"input", ByInput},
    {"collective", ByCollective},
    {"workspace_size", ByWorkspaceSize},
    {"optimizer_phase", ByOptimizerPhase},
    {"service_phase", ByServicePhase},
    {"unnamed_gradient", ByUnnamedGradient},
    {"backward", ByBackward},
    {"recompute", ByRecompute},
    {"forward_life", ByForwardLife},
    {"forward_site", ByForwardSite},
    {"script", ByScript},
    {"load", ByLoad},
};

}  // namespace

bool BlockFacts::ReleasedByScript() const {
  const bool own_thread = live->free_thread == around->scan->main_thread;
  const bool between = live->free_phase == Phase::kScript || live->free_phase == Phase::kLoad;
  return live->freed && own_thread && between && !free_stack->in_backward_call;
}

uint64_t CublasWorkspaceBytes(const v1::Process& process, const v1::Device* device) {
  for (const std::string& variable : process.environment()) {
    constexpr std::string_view kName = "CUBLAS_WORKSPACE_CONFIG=";
    if (!std::string_view(variable).starts_with(kName)) continue;
    // :KiB:COUNT[:KiB:COUNT...]
    uint64_t total = 0;
    const char* at = variable.c_str() + kName.size();
    while (*at == ':') {
      char* end = nullptr;
      const uint64_t kib = std::strtoull(at + 1, &end, 10);
      if (*end != ':') break;
      const uint64_t count = std::strtoull(end + 1, &end, 10);
      total += kib * 1024 * count;
      at = end;
    }
    if (total > 0) return total;
  }
  const uint32_t major = device == nullptr ? 0 : device->compute_major();
  return major >= 9 ? 33'554'432 : 8'519'680;
}

std::span<const Rule> Rules() { return kRules; }

Verdict Classify(const BlockFacts& facts) {
  Verdict verdict;
  for (const Rule& rule : kRules) {
    if (!rule.decide(facts, &verdict)) continue;
    verdict.rule = rule.name;
    return verdict;
  }
  verdict.evidence = "no rule decided";
  return verdict;
}

}  // namespace vramtrace::attribution
