#pragma once
// Which parameters are trained, and what follows for gradients, optimizer and what forward saves.

#include <set>
#include <string>

#include "analyzer/forecast/techniques/optimizer_edit.h"
#include "analyzer/forecast/techniques/passes.h"

namespace vramtrace::forecast {

// What the recorded optimizer asks for, in terms of the parameters it trains.
struct OptimizerRecipe {
  struct State {
    std::string key;
    Bytes numerator = 0;    // bytes of the state ...
    Bytes denominator = 0;  // ... of a parameter of so many; 0: `numerator` whatever the parameter
  };
  std::vector<State> states;
  uint64_t temporaries = 0;  // 0: none, 1: a list as large as all parameters, 2: two of one at a time
};
[[nodiscard]] OptimizerRecipe RecipeOf(const Stream& stream);
// `stream` with the recipe's requests for the parameters that are trained now.
[[nodiscard]] Stream Rebuild(const Stream& stream, const OptimizerRecipe& recipe);

// A linear layer: module path -> its weight.
struct LinearLayer {
  std::string path;
  ParameterId weight = ParameterId::kNone;
  uint64_t in = 0;
  uint64_t out = 0;
};
// Linear and transformers' Conv1D modules in the order of the model, the output layer (the last) left out.
[[nodiscard]] std::vector<LinearLayer> InnerLinears(const Stream& stream);

// Stops training every parameter but `kept`: their gradients and what is saved for nothing else are taken
// out of the edit. `adapted`: modules above whose first use nothing needs a gradient; without any, the first
// use of a kept parameter. `reading`: modules whose input stays saved all the same.
void Freeze(const Graph& graph, const std::set<std::string>& kept, const std::set<std::string>& adapted,
            const std::set<std::string>& reading, Edit* edit);

}  // namespace vramtrace::forecast
