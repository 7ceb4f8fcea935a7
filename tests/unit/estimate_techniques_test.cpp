// Every technique changes the peak as its definition says, and every row has a case.
#include <gmock/gmock.h>

#include <functional>
#include <map>

#include "analyzer/estimate/techniques.h"
#include "tests/unit/estimate_files.h"

namespace vramtrace::estimate {
namespace {

struct Case {
  Request before;
  // Bytes of the first, and of the second, that the technique is about; low and high of second over first.
  std::function<uint64_t(const Estimate&)> bytes;
  double low;
  double high;
};

uint64_t ForwardActivations(const Estimate& e) { return e.phases[1].memory[Class::kActivation]; }
uint64_t BackwardLogits(const Estimate& e) { return e.phases[2].memory[Class::kLogits]; }
uint64_t ForwardLogits(const Estimate& e) { return e.phases[1].memory[Class::kLogits]; }
uint64_t Optimizer(const Estimate& e) { return e.phases[3].memory[Class::kOptimizer] + 1; }
uint64_t StepTemporary(const Estimate& e) { return e.phases[3].memory[Class::kTemporary] + 1; }
uint64_t Gradients(const Estimate& e) { return e.phases[3].memory[Class::kGradient] + 1; }
uint64_t Weights(const Estimate& e) { return e.phases[0].memory[Class::kWeight] + 1; }
uint64_t Peak(const Estimate& e) { return e.AtPeak().Total(); }

const std::map<std::string, Case>& Cases() {
  static const Request base{.batch = 4, .sequence = 2048};
  static const Request fp32{.batch = 4, .sequence = 512, .weights = Dtype::kFp32};
  static const Request eager{.batch = 1, .sequence = 2048, .attention = AttentionKind::kEager};
  static const std::map<std::string, Case> cases = {
      // 2 h of about 45 h bytes a token and layer.
      {"activation checkpointing", {base, ForwardActivations, 0.03, 0.10}},
      // From 10 to 2 bytes a logit and an eighth of 8.
      {"chunked loss", {base, ForwardLogits, 0.25, 0.35}},
      {"fused linear and loss", {base, BackwardLogits, 0, 0.35}},
      {"pure BF16", {fp32, Peak, 0.45, 0.60}},
      {"autocast", {fp32, ForwardActivations, 0.5, 1.0}},
      {"fused attention", {eager, ForwardActivations, 0.2, 0.4}},
      {"8-bit optimizer", {base, Optimizer, 0.50, 0.52}},
      {"optimizer in the backward", {base, Gradients, 0, 0.001}},
      {"no list in the step", {base, StepTemporary, 0.01, 0.05}},
      {"optimizer on the host", {base, Optimizer, 0, 0.001}},
      {"parameters on the host", {base, Weights, 0, 0.001}},
      {"checkpoints on the host", {base, ForwardActivations, 0, 0.06}},
      {"half the batch, twice the steps", {base, ForwardActivations, 0.49, 0.51}},
      {"LoRA", {base, Gradients, 0, 0.02}},
      {"QLoRA", {base, Weights, 0.25, 0.31}},
  };
  return cases;
}

TEST(Techniques, EachHasACase) {
  for (const Technique& technique : Techniques()) {
    EXPECT_TRUE(Cases().contains(std::string(technique.name))) << technique.name << " has no case";
    EXPECT_FALSE(technique.source.empty()) << technique.name;
    EXPECT_TRUE(technique.option.starts_with("--")) << technique.name;
  }
  EXPECT_EQ(Cases().size(), Techniques().size());
}

TEST(Techniques, EachChangesWhatItIsAbout) {
  const Model model = SizedModel("7b");
  for (const Technique& technique : Techniques()) {
    const Case& expected = Cases().at(std::string(technique.name));
    ASSERT_TRUE(technique.applies(expected.before)) << technique.name;
    Request request = expected.before;
    technique.apply(request);
    const auto before = static_cast<double>(expected.bytes(EstimateOf(model, expected.before)));
    const auto after = static_cast<double>(expected.bytes(EstimateOf(model, request)));
    EXPECT_GE(after / before, expected.low) << technique.name;
    EXPECT_LE(after / before, expected.high) << technique.name;
    EXPECT_FALSE(technique.applies(request) &&
                 technique.name != std::string("half the batch, twice the steps"))
        << technique.name << " applies to what it made";
  }
}

TEST(Changes, AreOnlyThoseThatLowerThePeakBestFirst) {
  const Model model = SizedModel("7b");
  const Estimate estimate = EstimateOf(model, {.batch = 1, .sequence = 512});
  const std::vector<Change> changes = Changes(model, estimate);
  ASSERT_GE(changes.size(), 3u);
  uint64_t last = 0;
  for (const Change& change : changes) {
    EXPECT_LT(change.after.used.expected, estimate.used.expected) << change.technique->name;
    EXPECT_GE(change.after.used.expected, last);
    last = change.after.used.expected;
  }
}

// A saving is peak minus peak: what is not at the peak saves nothing.
TEST(Changes, WhatIsNotAtThePeakIsNotOffered) {
  const Model model = SizedModel("7b");
  const Estimate estimate = EstimateOf(model, {.batch = 1, .sequence = 64});  // peak in the optimizer's step
  ASSERT_EQ(estimate.phases[estimate.peak].name, "optimizer");
  for (const Change& change : Changes(model, estimate))
    EXPECT_NE(change.technique->name, "activation checkpointing");
}

TEST(Needs, ShareTheJobOverMoreCards) {
  const Model model = SizedModel("70b");
  const auto needs = Needs(model, EstimateOf(model, {.sequence = 1024, .checkpointing = true}));
  ASSERT_EQ(needs.size(), 4u);
  for (size_t at = 1; at < needs.size(); ++at) {
    EXPECT_LT(needs[at].used.expected, needs[at - 1].used.expected);
    EXPECT_THAT(needs[at].arrangement, testing::HasSubstr("FSDP over"));
  }
  const auto asked =
      Needs(model, EstimateOf(model, {.sequence = 1024, .data_parallel = 2, .tensor_parallel = 4}));
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].cards, 8);
  EXPECT_EQ(asked[0].arrangement, "FSDP over 2, tensor parallel 4");
}

}  // namespace
}  // namespace vramtrace::estimate
