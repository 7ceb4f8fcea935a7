#include <gmock/gmock.h>

#include <algorithm>

#include "analyzer/model/stack_facts.h"
#include "tests/unit/analyzer_files.h"

namespace vramtrace::model {
namespace {

using testing::PythonFrame;
using testing::TraceBuilder;

constexpr char kTorch[] = "/v/lib/python3.11/site-packages/torch/";

class StackFactsTest : public testing::FileTest {
 protected:
  StackFacts Facts(const std::vector<PythonFrame>& frames) {
    TraceBuilder builder;
    const uint32_t stack = builder.Stack(frames);
    const auto file = trace::TraceFile::Open(Write(&builder));
    tables_ = ReadTables(*file.value());
    return StackTable(*tables_)[StackId{stack}];
  }
  static PythonFrame Torch(const std::string& file, const std::string& name, uint64_t module = 0) {
    return {kTorch + file, 1, name, module};
  }
  std::shared_ptr<const Tables> tables_;
};

TEST_F(StackFactsTest, InnermostModuleAndFrames) {
  const StackFacts facts =
      Facts({{"/home/u/train.py", 5, "main"},
             Torch("nn/modules/module.py", "Module._wrapped_call_impl", 1),
             {"/v/lib/python3.11/site-packages/transformers/modeling.py", 40, "Block.forward"},
             Torch("nn/modules/module.py", "Module._wrapped_call_impl", 2),
             Torch("nn/modules/linear.py", "Linear.forward")});
  EXPECT_EQ(facts.module_object, 2U);
  EXPECT_EQ(FrameText(*tables_, facts.site), "transformers/modeling.py:40 (Block.forward)");
  EXPECT_EQ(FrameText(*tables_, facts.script), "train.py:5 (main)");
  EXPECT_EQ(FrameText(*tables_, facts.innermost), "modules/linear.py:1 (Linear.forward)");
}

TEST_F(StackFactsTest, StandardLibraryIsNotTheScript) {
  const StackFacts facts =
      Facts({{"/usr/lib/python3.11/runpy.py", 1, "run"}, {"<frozen importlib>", 1, "load"}});
  EXPECT_EQ(facts.script, FrameId::kNone);
  EXPECT_EQ(facts.site, FrameId::kNone);
}

// One case for each row of frame_rules.def; a row without a case fails EveryRuleHasACase below.
struct RuleCase {
  const char* file;
  const char* name;
  FrameHint hint;
};
const RuleCase kCases[] = {
    {"torch/optim/optimizer.py", "Optimizer.profile_hook_step.<locals>.wrapper", FrameHint::kOptimizer},
    {"torch/optim/optimizer.py", "Optimizer.zero_grad", FrameHint::kZeroGrad},
    {"torch/nn/modules/module.py", "Module.zero_grad", FrameHint::kZeroGrad},
    {"torch/nn/utils/clip_grad.py", "clip_grad_norm_", FrameHint::kClip},
    {"torch/nn/utils/clip_grad.py", "clip_grad_value_", FrameHint::kClip},
    {"torch/utils/checkpoint.py", "_checkpoint_without_reentrant_generator.<locals>.recompute_fn",
     FrameHint::kRecompute},
    {"torch/utils/checkpoint.py", "_checkpoint_hook.__init__.<locals>.unpack_hook", FrameHint::kRecompute},
    {"torch/utils/checkpoint.py", "CheckpointFunction.backward", FrameHint::kRecompute},
    {"torch/serialization.py", "save", FrameHint::kSave},
    {"torch/nn/modules/module.py", "Module.state_dict", FrameHint::kSave},
    {"torch/optim/optimizer.py", "Optimizer.state_dict", FrameHint::kSave},
    {"transformers/modeling_utils.py", "PreTrainedModel.save_pretrained", FrameHint::kSave},
    {"torch/serialization.py", "load", FrameHint::kLoad},
    {"torch/nn/modules/module.py", "Module.load_state_dict", FrameHint::kLoad},
    {"transformers/modeling_utils.py", "PreTrainedModel.from_pretrained", FrameHint::kLoad},
    {"train.py", "evaluate", FrameHint::kEvaluate},
    {"trainer.py", "Trainer.evaluation_loop", FrameHint::kEvaluate},
    {"trainer.py", "Trainer.prediction_step", FrameHint::kEvaluate},
    {"lightning.py", "Model.validation_step", FrameHint::kEvaluate},
    {"train.py", "validate", FrameHint::kEvaluate},
};

TEST_F(StackFactsTest, EveryFrameRuleMatchesItsCase) {
  for (const RuleCase& c : kCases) {
    EXPECT_EQ(Facts({{std::string("/v/site-packages/") + c.file, 1, c.name}}).hint, c.hint) << c.name;
  }
}

bool HasCase(std::string_view file_end, std::string_view name, FrameHint hint) {
  return std::any_of(std::begin(kCases), std::end(kCases), [&](const RuleCase& c) {
    return std::string_view(c.name).find(name) != std::string_view::npos &&
           std::string_view(c.file).ends_with(file_end) && c.hint == hint;
  });
}

TEST(FrameRules, EveryRuleHasACase) {
#define VRAMTRACE_FRAME_RULE(file_end, match, name, hint) \
  EXPECT_TRUE(HasCase(file_end, name, FrameHint::hint)) << name;
#include "analyzer/model/frame_rules.def"
#undef VRAMTRACE_FRAME_RULE
}

TEST_F(StackFactsTest, NamesMatchWholePartsOnly) {
  EXPECT_EQ(Facts({{"train.py", 1, "reevaluate"}}).hint, FrameHint::kNone);
  EXPECT_EQ(Facts({{"other.py", 1, "Optimizer.zero_grad"}}).hint, FrameHint::kNone);
}

TEST_F(StackFactsTest, ClosureInsideAnOptimizerStepIsAForward) {
  const StackFacts facts =
      Facts({{"/v/torch/optim/optimizer.py", 1, "Optimizer.profile_hook_step.<locals>.wrapper"},
             {"/home/train.py", 1, "closure"},
             Torch("nn/modules/module.py", "Module._wrapped_call_impl", 3)});
  EXPECT_EQ(PhaseOf(facts, {}, true), Phase::kForward);
}

TEST_F(StackFactsTest, BackwardInsideReentrantCheckpointingIsABackward) {
  const PythonFrame checkpoint = Torch("utils/checkpoint.py", "CheckpointFunction.backward");
  const PythonFrame backward = Torch("autograd/__init__.py", "backward");
  const trace::AutogradPosition node{5, StringId{1}, 0};
  EXPECT_EQ(PhaseOf(Facts({checkpoint, backward}), node, true), Phase::kBackward);
  const PythonFrame call = Torch("nn/modules/module.py", "Module._wrapped_call_impl", 3);
  EXPECT_EQ(PhaseOf(Facts({checkpoint, call}), node, true), Phase::kRecompute);
}

TEST_F(StackFactsTest, DistributedTrainingIsKnownByItsFrames) {
  EXPECT_TRUE(Facts({Torch("distributed/fsdp/_fully_shard/_fsdp_collectives.py", "foreach_all_gather")})
                  .in_collective);
  EXPECT_TRUE(Facts({Torch("distributed/fsdp/_fully_shard/_fsdp_param.py", "alloc_storage")}).in_collective);
  const PythonFrame rebuild = Torch("nn/parallel/distributed.py", "DistributedDataParallel._pre_forward");
  EXPECT_TRUE(Facts({rebuild}).makes_buckets);
  // Inputs are moved under it.
  EXPECT_FALSE(Facts({rebuild, Torch("distributed/utils.py", "_to_kwargs")}).makes_buckets);
}

TEST_F(StackFactsTest, PhasesFollowFramesAndTheRunningNode) {
  const StackFacts module = Facts({Torch("nn/modules/module.py", "Module._wrapped_call_impl", 3)});
  const StackFacts script = Facts({{"/home/train.py", 1, "main"}});
  const trace::AutogradPosition node{5, StringId{1}, 0};
  EXPECT_EQ(PhaseOf(module, {}, false), Phase::kForward);
  EXPECT_EQ(PhaseOf(StackFacts{}, node, true), Phase::kBackward);
  EXPECT_EQ(PhaseOf(module, node, true), Phase::kRecompute);
  EXPECT_EQ(PhaseOf(script, {}, true), Phase::kScript);
  EXPECT_EQ(PhaseOf(script, {}, false), Phase::kLoad);
  const StackFacts evaluate = Facts(
      {{"/home/train.py", 1, "evaluate"}, Torch("nn/modules/module.py", "Module._wrapped_call_impl", 3)});
  EXPECT_EQ(PhaseOf(evaluate, {}, true), Phase::kEvaluate);
}

}  // namespace
}  // namespace vramtrace::model
