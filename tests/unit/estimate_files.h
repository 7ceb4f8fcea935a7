#pragma once
// Models and requests for the tests of analyzer/estimate.

#include <gtest/gtest.h>

#include <string>

#include "analyzer/estimate/estimate.h"
#include "analyzer/estimate/sizes.h"

namespace vramtrace::estimate {

inline Model ModelFrom(const std::string& json) {
  trace::Result<Config> config = Config::Parse(json, "config.json");
  EXPECT_TRUE(config.ok()) << json;
  trace::Result<Model> model = Recognise(std::move(config.value()));
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().Sentence());
  return std::move(model.value());
}

inline Model SizedModel(const std::string& size) {
  trace::Result<Model> model = ModelOfSize(size);
  EXPECT_TRUE(model.ok()) << size;
  return std::move(model.value());
}

inline Estimate EstimateOf(const Model& model, const Request& request) {
  EXPECT_EQ(CheckRequest(request), "");
  trace::Result<Estimate> estimate = MakeEstimate(model, request);
  EXPECT_TRUE(estimate.ok()) << (estimate.ok() ? "" : estimate.error().Sentence());
  return std::move(estimate.value());
}

inline double Gib(uint64_t bytes) { return static_cast<double>(bytes) / (1u << 30); }
inline double Gb(uint64_t bytes) { return static_cast<double>(bytes) / 1e9; }

// The error that a config makes; empty when there is none.
inline std::string ErrorOf(const std::string& json, const Request& request = {}) {
  trace::Result<Config> config = Config::Parse(json, "config.json");
  if (!config.ok()) return config.error().Sentence();
  const trace::Result<Model> model = Recognise(std::move(config.value()));
  if (!model.ok()) return model.error().Sentence();
  const trace::Result<Estimate> estimate = MakeEstimate(model.value(), request);
  return estimate.ok() ? "" : estimate.error().Sentence();
}

inline constexpr const char* kSmallLlama =
    R"({"model_type":"llama","architectures":["LlamaForCausalLM"],"hidden_size":1024,"intermediate_size":2816,
        "num_hidden_layers":8,"num_attention_heads":16,"num_key_value_heads":4,"vocab_size":32000})";

}  // namespace vramtrace::estimate
