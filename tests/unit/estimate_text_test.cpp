#include "analyzer/estimate/estimate_text.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/unit/estimate_files.h"

namespace vramtrace::estimate {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(EstimateText, FitsAScreenAndSaysHowEachFigureIsKnown) {
  const Model model = SizedModel("7b");
  const Estimate estimate = EstimateOf(model, {.sequence = 2048});
  const std::string text = EstimateText(estimate, Changes(model, estimate));
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 30);
  EXPECT_THAT(text,
              AllOf(HasSubstr("Llama-2-7B (Llama): 6,738,415,616 parameters"), HasSubstr("13,476,831,232 B"),
                    HasSubstr("exact, from shapes"), HasSubstr("computed, operation by operation"),
                    HasSubstr("band "), HasSubstr("Bytes a parameter: 8.00"), HasSubstr("7b is taken as")));
}

TEST(EstimateJson, AddsUp) {
  const Model model = SizedModel("8b");
  const Estimate estimate = EstimateOf(model, {.method = Method::kLora, .sequence = 1024});
  const nlohmann::ordered_json json = EstimateJson(estimate, Changes(model, estimate));
  uint64_t sum = 0;
  for (const auto& row : json["classes"]) {
    sum += row["bytes"].get<uint64_t>();
    EXPECT_FALSE(row["basis"].get<std::string>().empty());
  }
  EXPECT_EQ(sum, json["allocated_bytes"]["expected"].get<uint64_t>());
  uint64_t highest = 0;
  for (const auto& phase : json["phases"]) {
    uint64_t of_phase = 0;
    for (const auto& [name, bytes] : phase["classes"].items()) of_phase += bytes.get<uint64_t>();
    EXPECT_EQ(of_phase, phase["bytes"].get<uint64_t>());
    highest = std::max(highest, of_phase);
  }
  EXPECT_EQ(highest, sum) << "the peak is the highest phase, never a sum of them";
  EXPECT_LE(json["device_used_without_context_bytes"]["low"],
            json["device_used_without_context_bytes"]["expected"]);
  EXPECT_LE(json["device_used_without_context_bytes"]["expected"],
            json["device_used_without_context_bytes"]["high"]);
  EXPECT_EQ(json["adapter_parameters"], 41'943'040u);
}

}  // namespace
}  // namespace vramtrace::estimate
