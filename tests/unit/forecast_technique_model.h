#pragma once
// A run of a small model, for tests of techniques: an embedding and two linear layers, with every event that
// matters to them. Sizes are in MiB and differ where they have to be told apart.

#include <string>
#include <vector>

#include "analyzer/forecast/technique.h"
#include "tests/unit/forecast_streams.h"

namespace vramtrace::testing {

inline constexpr forecast::Bytes kMiB = 1 << 20;
inline constexpr forecast::Bytes kTable = 16 * kMiB;  // of the embedding
inline constexpr forecast::Bytes kWeight = 4 * kMiB;  // 1024 x 1024, of each linear layer
inline constexpr forecast::Bytes kValue = 8 * kMiB;   // 2048 rows of 1024: every activation

// Three linear layers "layers.N.fc" behind "embed", and "head"; two steps of AdamW.
class LinearModel : public StreamMaker {
 public:
  static constexpr uint32_t kLayers = 3;

  LinearModel() {
    stream().facts.optimizers = {"AdamW"};
    stream().state_keys = {"", "exp_avg", "exp_avg_sq"};
    AddParameter("embed", "Embedding", kTable, {4096, 1024});
    for (uint32_t layer = 0; layer < kLayers; ++layer) {
      stream().modules.push_back({"layers." + std::to_string(layer), "Block"});
      AddParameter("layers." + std::to_string(layer) + ".fc", "Linear", kWeight, {1024, 1024});
    }
    AddParameter("head", "Linear", kWeight, {1024, 1024});
    for (uint32_t p = 0; p < stream().parameters.size(); ++p)
      Own(1, forecast::Phase::kLoad, p, Class::kWeight);
    for (int step = 0; step < 2; ++step) Step(step == 0);
  }

  // Bytes of the requests that are alive right before the first backward event of a step.
  static forecast::Bytes AliveAtBackward(const forecast::Stream& stream, uint32_t step) {
    forecast::Bytes alive = 0;
    uint32_t now = 0;
    for (const forecast::Event& event : stream.events) {
      if (event.kind == forecast::EventKind::kStepEnd) {
        ++now;
        continue;
      }
      if (now == step && event.phase == forecast::Phase::kBackward) break;
      const forecast::Bytes bytes = stream[event.request].bytes;
      alive += event.kind == forecast::EventKind::kAllocate ? bytes : 0 - bytes;
    }
    return alive;
  }

 private:
  using Class = forecast::MemoryClass;

  void AddParameter(const std::string& module, const char* class_name, forecast::Bytes bytes,
                    std::vector<int64_t> shape) {
    stream().modules.push_back({module, class_name});
    stream().parameters.push_back({module + ".weight", module, bytes, 4, "float32", std::move(shape), true});
  }

  forecast::RequestId Own(uint64_t key, forecast::Phase phase, uint32_t parameter, Class memory_class) {
    const auto& of = stream().parameters[parameter];
    const forecast::RequestId id =
        Allocate(Site(100 * key + parameter, phase, of.module_path), of.bytes, memory_class);
    stream()[id].parameter = forecast::ParameterId{parameter};
    return id;
  }

  forecast::RequestId At(uint64_t key, forecast::Phase phase, uint32_t parameter, uint64_t number,
                         Class memory_class) {
    const forecast::SiteId site =
        Site(100 * key + parameter, phase, stream().parameters[parameter].module_path);
    const forecast::RequestId id = Allocate(site, kValue, memory_class);
    stream()[id].autograd_number = number;
    stream()[id].saved = memory_class == Class::kActivation;
    return id;
  }

  void Step(bool first) {
    const uint64_t base = first ? 10 : 100;
    const uint32_t count = kLayers + 1;  // linear layers
    std::vector<forecast::RequestId> values{
        At(2, forecast::Phase::kForward, 0, base + 1, Class::kActivation)};
    for (uint32_t i = 0; i < count; ++i) {
      const bool last = i + 1 == count;
      values.push_back(
          At(2, forecast::Phase::kForward, i + 1, base + 2 + i, last ? Class::kOutput : Class::kActivation));
    }
    std::vector<forecast::RequestId> gradients;
    forecast::RequestId incoming = forecast::RequestId::kNone;
    for (uint32_t i = count; i-- > 0;) {
      const uint64_t node = base + 1 + i;
      const forecast::RequestId outgoing = At(3, forecast::Phase::kBackward, i + 1, node, Class::kTemporary);
      Name(outgoing, "AddmmBackward0");
      gradients.push_back(Own(4, forecast::Phase::kBackward, i + 1, Class::kGradient));
      stream()[gradients.back()].autograd_number = node;
      Name(gradients.back(), "AddmmBackward0");
      if (incoming != forecast::RequestId::kNone) Free(incoming);
      stream().events.push_back({forecast::EventKind::kFree, forecast::Phase::kBackward, values[i]});
      incoming = outgoing;
    }
    gradients.push_back(Own(4, forecast::Phase::kBackward, 0, Class::kGradient));
    stream()[gradients.back()].autograd_number = base;
    Name(gradients.back(), "EmbeddingBackward0");
    Free(incoming);
    for (uint32_t p = 0; first && p < stream().parameters.size(); ++p) {
      for (uint16_t key = 1; key <= 2; ++key) {
        stream()[Own(5, forecast::Phase::kOptimizer, p, Class::kOptimizerState)].state_key = key;
      }
    }
    std::vector<forecast::RequestId> list;
    for (const auto& parameter : stream().parameters) {
      list.push_back(Allocate(Site(6, forecast::Phase::kOptimizer), parameter.bytes, Class::kTemporary));
    }
    for (const forecast::RequestId id : list) Free(id);
    for (const forecast::RequestId id : gradients) {
      stream().events.push_back({forecast::EventKind::kFree, forecast::Phase::kZeroGrad, id});
    }
    stream().events.push_back({forecast::EventKind::kFree, forecast::Phase::kScript, values.back()});
    EndStep();
  }

  void Name(forecast::RequestId id, const char* operator_name) {
    stream().sites[static_cast<size_t>(stream()[id].site)].operator_name = operator_name;
  }
};

inline forecast::Edited Apply(const forecast::Stream& stream, std::string_view text) {
  const auto chosen = std::get<forecast::Chosen>(forecast::ParseTechnique(text));
  const auto result = forecast::ApplyTechniques(stream, {&chosen, 1});
  if (const auto* why = std::get_if<std::string>(&result)) return *why;
  return std::get<forecast::Stream>(result);
}

}  // namespace vramtrace::testing
