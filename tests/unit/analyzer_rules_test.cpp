#include <gmock/gmock.h>

#include <functional>
#include <set>

#include "analyzer/attribution/rules.h"

namespace vramtrace::attribution {
namespace {

using model::Phase;
using timeline::NextPhase;

constexpr uint64_t kMiB = 1 << 20;
constexpr model::ThreadId kMain{1};

// A block with everything at rest: each case changes what its rule looks at.
struct World {
  model::Tables tables;
  std::unique_ptr<model::StackTable> stacks;
  timeline::Scan scan;
  timeline::Snapshot snapshot;
  std::unique_ptr<ParameterSizes> parameters;
  Surroundings around;
  timeline::LiveBlock live;
  BlockLabels labels;
  timeline::LabelRow label;
  model::StackFacts stack;
  model::StackFacts free_stack;
  BlockFacts facts;

  World() {
    tables.strings.Add(1, "layers.0.weight", 100);
    scan.main_thread = kMain;
    scan.labels.push_back({1, 0, 4 * kMiB, v1::Label::KIND_PARAMETER, model::StringId{1}, {}, {}, {}, 0});
    stacks = std::make_unique<model::StackTable>(tables);
    parameters = std::make_unique<ParameterSizes>(tables, scan);
    around = {&tables, stacks.get(), &scan, &snapshot, parameters.get(), false, 32 * kMiB};
    live.block.bytes = live.block.requested = 3 * kMiB;
    live.block.sequence = 10;
    facts.around = &around;
    facts.live = &live;
    facts.labels = &labels;
    facts.stack = &stack;
    facts.free_stack = &free_stack;
  }
  // As where labels were off.
  void WithoutParameters() {
    scan.labels.clear();
    parameters = std::make_unique<ParameterSizes>(tables, scan);
    around.parameters = parameters.get();
  }
  void Label(v1::Label::Kind kind) {
    label.kind = kind;
    labels.rows = {&label};
  }
  void Freed(uint64_t sequence, Phase phase, model::ThreadId thread = kMain) {
    live.freed = true;
    live.free_sequence = sequence;
    live.free_phase = phase;
    live.free_thread = thread;
  }
};

struct RuleCase {
  const char* rule;
  MemoryClass expected;
  std::function<void(World&)> arrange;
};

const RuleCase kCases[] = {
    {"label", MemoryClass::kWeight, [](World& w) { w.Label(v1::Label::KIND_PARAMETER); }},
    {"label", MemoryClass::kBuffer, [](World& w) { w.Label(v1::Label::KIND_BUFFER); }},
    {"label", MemoryClass::kGradient, [](World& w) { w.Label(v1::Label::KIND_GRADIENT); }},
    {"label", MemoryClass::kOptimizerState, [](World& w) { w.Label(v1::Label::KIND_OPTIMIZER_STATE); }},
    {"label", MemoryClass::kInput, [](World& w) { w.Label(v1::Label::KIND_INPUT); }},
    {"input", MemoryClass::kInput, [](World& w) { w.live.block.is_input = true; }},
    {"collective", MemoryClass::kCommunication, [](World& w) { w.stack.in_collective = true; }},
    {"collective", MemoryClass::kCommunication, [](World& w) { w.stack.makes_buckets = true; }},
    {"workspace_size", MemoryClass::kWorkspace,
     [](World& w) {
       w.live.block.phase = Phase::kBackward;
       w.live.block.bytes = w.live.block.requested = 8'519'680;
     }},
    {"workspace_size", MemoryClass::kWorkspace,
     [](World& w) {
       w.live.block.phase = Phase::kForward;
       w.live.block.bytes = w.live.block.requested = 32 * kMiB;
       w.live.outlived_step = true;
     }},
    {"workspace_size", MemoryClass::kWorkspace,
     [](World& w) {
       w.live.block.phase = Phase::kForward;
       w.live.block.bytes = w.live.block.requested = kMiB;
       w.Freed(11, Phase::kForward);
     }},
    // The size alone is not enough: an activation of 32 MiB.
    {"forward_life", MemoryClass::kActivation,
     [](World& w) {
       w.live.block.phase = Phase::kForward;
       w.live.block.bytes = w.live.block.requested = 32 * kMiB;
       w.live.backward_followed = true;
       w.Freed(500, Phase::kBackward);
     }},
    {"optimizer_phase", MemoryClass::kTemporary, [](World& w) { w.live.block.phase = Phase::kOptimizer; }},
    {"optimizer_phase", MemoryClass::kOptimizerState,
     [](World& w) {
       w.live.block.phase = Phase::kOptimizer;
       w.live.outlived_step = true;
     }},
    {"optimizer_phase", MemoryClass::kOptimizerState,
     [](World& w) {
       w.live.block.phase = Phase::kOptimizer;
       w.stack.in_optimizer_init = true;
     }},
    {"service_phase", MemoryClass::kTemporary, [](World& w) { w.live.block.phase = Phase::kClip; }},
    {"service_phase", MemoryClass::kSaveCopy, [](World& w) { w.live.block.phase = Phase::kSave; }},
    {"unnamed_gradient", MemoryClass::kGradient,  // of a shard
     [](World& w) {
       w.live.block.phase = Phase::kBackward;
       w.live.outlived_step = true;
       w.stack.in_collective = true;
     }},
    {"unnamed_gradient", MemoryClass::kGradient,
     [](World& w) {
       w.WithoutParameters();
       w.live.block.phase = Phase::kBackward;
       w.live.outlived_step = true;
       w.Freed(50, Phase::kScript);
     }},
    {"unnamed_gradient", MemoryClass::kGradient,  // of the size of a workspace, but it goes
     [](World& w) {
       w.live.block.bytes = w.live.block.requested = 32 * kMiB;
       w.live.block.phase = Phase::kBackward;
       w.live.outlived_step = true;
       w.Freed(50, Phase::kZeroGrad);
     }},
    {"unnamed_gradient", MemoryClass::kGradient,
     [](World& w) {
       w.live.block.phase = Phase::kBackward;
       w.Freed(50, Phase::kZeroGrad);
     }},
    {"unnamed_gradient", MemoryClass::kGradient,
     [](World& w) {
       w.live.block.phase = Phase::kBackward;
       w.live.block.bytes = w.live.block.requested = 4 * kMiB;
       w.facts.has_module = true;
       w.facts.module_path = "layers.0";
     }},
    {"backward", MemoryClass::kTemporary,
     [](World& w) {
       w.live.block.phase = Phase::kBackward;
       w.Freed(50, Phase::kBackward);
     }},
    {"recompute", MemoryClass::kActivation,
     [](World& w) {
       w.live.block.phase = Phase::kRecompute;
       w.Freed(50, Phase::kBackward);
     }},
    {"recompute", MemoryClass::kTemporary,
     [](World& w) {
       w.live.block.phase = Phase::kRecompute;
       w.Freed(50, Phase::kRecompute);
     }},
    {"forward_life", MemoryClass::kActivation,
     [](World& w) {
       w.live.block.phase = Phase::kForward;
       w.live.backward_followed = true;
       w.Freed(50, Phase::kBackward, model::ThreadId{2});
     }},
    {"forward_life", MemoryClass::kTemporary,
     [](World& w) {
       w.live.block.phase = Phase::kForward;
       w.Freed(50, Phase::kForward);
     }},
    {"forward_life", MemoryClass::kOutput,
     [](World& w) {
       w.live.block.phase = Phase::kForward;
       w.live.backward_followed = true;
       w.Freed(50, Phase::kScript);
     }},
    // Let go on the main thread, but by the engine inside backward().
    {"forward_life", MemoryClass::kActivation,
     [](World& w) {
       w.live.block.phase = Phase::kForward;
       w.live.backward_followed = true;
       w.Freed(50, Phase::kScript);
       w.free_stack.in_backward_call = true;
     }},
    {"forward_site", MemoryClass::kTemporary,
     [](World& w) {
       w.live.block.phase = Phase::kForward;
       w.facts.site = {1, 9, 500};
       w.snapshot.request.instant.sequence = 100;
     }},
    // The same line allocates what dies at once and what is saved: this one has lived too long to be of the
    // former.
    {"forward_site", MemoryClass::kActivation,
     [](World& w) {
       w.live.block.phase = Phase::kForward;
       w.facts.site = {0, 9, 5};
       w.snapshot.request.instant.sequence = 100;
     }},
    {"forward_site", MemoryClass::kActivation,
     [](World& w) {
       w.live.block.phase = Phase::kForward;
       w.facts.site = {9, 1, 500};
       w.snapshot.request.instant.sequence = 100;
     }},
    {"forward_site", MemoryClass::kActivation, [](World& w) { w.live.block.phase = Phase::kForward; }},
    {"script", MemoryClass::kInput, [](World& w) { w.live.next = NextPhase::kForward; }},
    {"script", MemoryClass::kTemporary, [](World& w) { w.stack.in_backward_call = true; }},
    {"script", MemoryClass::kActivation,
     [](World& w) {
       w.live.next = NextPhase::kBackward;
       w.live.backward_followed = true;
       w.Freed(50, Phase::kBackward, model::ThreadId{2});
     }},
    {"script", MemoryClass::kOutput,
     [](World& w) {
       w.live.next = NextPhase::kBackward;
       w.live.backward_followed = true;
       w.Freed(50, Phase::kScript);
     }},
    {"script", MemoryClass::kTemporary,
     [](World& w) {
       w.live.next = NextPhase::kBackward;
       w.Freed(12, Phase::kScript);
     }},
    {"load", MemoryClass::kWeight,
     [](World& w) {
       w.live.block.phase = Phase::kLoad;
       w.stack.in_module_apply = true;
     }},
    {"load", MemoryClass::kTemporary,  // the parts of a flat buffer
     [](World& w) {
       w.live.block.phase = Phase::kLoad;
       w.stack.in_module_apply = true;
       w.Freed(12, Phase::kLoad);
     }},
    {"load", MemoryClass::kInput,
     [](World& w) {
       w.live.block.phase = Phase::kLoad;
       w.live.next = NextPhase::kForward;
       w.Freed(50, Phase::kScript);
     }},
    {"load", MemoryClass::kBuffer,
     [](World& w) {
       w.live.block.phase = Phase::kLoad;
       w.live.next = NextPhase::kForward;
     }},
    {"load", MemoryClass::kWeight,
     [](World& w) {
       w.WithoutParameters();
       w.live.block.phase = Phase::kLoad;
       w.stack.in_constructor = true;
     }},
    {"load", MemoryClass::kWeight,  // freed when the process ends, after its last step
     [](World& w) {
       w.WithoutParameters();
       w.live.block.phase = Phase::kLoad;
       w.live.next = NextPhase::kForward;
       w.live.outlived_step = true;
       w.scan.last_step_end = 40;
       w.Freed(50, Phase::kScript);
     }},
    {"load", MemoryClass::kInput,  // replaced by the next batch, after a step
     [](World& w) {
       w.WithoutParameters();
       w.live.block.phase = Phase::kLoad;
       w.live.next = NextPhase::kForward;
       w.live.outlived_step = true;
       w.scan.last_step_end = 60;
       w.Freed(50, Phase::kScript);
     }},
    {"none", MemoryClass::kUnknown, [](World& w) { w.live.block.phase = Phase::kLoad; }},
    {"none", MemoryClass::kUnknown,
     [](World& w) {
       w.live.block.phase = Phase::kLoad;
       w.Freed(50, Phase::kScript);
     }},
    {"none", MemoryClass::kUnknown, [](World&) {}},
};

TEST(Rules, EachDecidesItsCases) {
  for (const RuleCase& c : kCases) {
    World world;
    c.arrange(world);
    const Verdict verdict = Classify(world.facts);
    EXPECT_EQ(verdict.rule, c.rule) << verdict.evidence;
    EXPECT_EQ(verdict.memory_class, c.expected) << c.rule << ": " << verdict.evidence;
    EXPECT_FALSE(verdict.evidence.empty());
  }
}

TEST(Rules, EveryRuleHasACase) {
  std::set<std::string_view> covered;
  for (const RuleCase& c : kCases) covered.insert(c.rule);
  for (const Rule& rule : Rules()) EXPECT_TRUE(covered.contains(rule.name)) << rule.name;
}

TEST(Rules, UnprovenActivationOfTheRunningModuleIsOnlyALowGuess) {
  World world;
  world.live.block.phase = Phase::kForward;
  EXPECT_EQ(Classify(world.facts).confidence, Confidence::kMedium);
}

TEST(CublasWorkspace, ComesFromTheVariableOrTheDevice) {
  v1::Process process;
  v1::Device device;
  device.set_compute_major(8);
  EXPECT_EQ(CublasWorkspaceBytes(process, &device), 8'519'680U);
  device.set_compute_major(9);
  EXPECT_EQ(CublasWorkspaceBytes(process, &device), 33'554'432U);
  process.add_environment("CUBLAS_WORKSPACE_CONFIG=:4096:8:16:8");
  EXPECT_EQ(CublasWorkspaceBytes(process, &device), (4096U * 8 + 16 * 8) * 1024);
  process.set_environment(0, "CUBLAS_WORKSPACE_CONFIG=nonsense");
  EXPECT_EQ(CublasWorkspaceBytes(process, nullptr), 8'519'680U);
}

}  // namespace
}  // namespace vramtrace::attribution
