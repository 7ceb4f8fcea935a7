// Training the end of a model only.

#include <algorithm>

#include "analyzer/forecast/techniques/parameters.h"
#include "analyzer/forecast/techniques/rows.h"

namespace vramtrace::forecast {

bool IsFrozen(const Stream& stream) {
  Bytes frozen = 0;
  Bytes all = 0;
  for (const Parameter& parameter : stream.parameters) {
    all += parameter.bytes;
    if (!parameter.trained) frozen += parameter.bytes;
  }
  return frozen > all / 2;
}

// All but the last `blocks` repeated ones and what comes after them in the model.
Edited ApplyFreeze(const Stream& stream, const TechniqueOptions& options) {
  const std::vector<std::string> blocks = RepeatedBlocks(stream);
  if (blocks.empty()) return "no module of the model repeats";
  if (OptimizerPlaces(stream).empty()) return "no optimizer step was completed";
  const size_t first = blocks.size() - std::min<size_t>(options.blocks, blocks.size());
  std::set<std::string> kept;
  size_t after = 0;  // place of the last block's last parameter
  for (size_t i = 0; i < stream.parameters.size(); ++i) {
    const std::string& path = stream.parameters[i].module_path;
    for (size_t b = first; b < blocks.size(); ++b) {
      if (IsBelow(path, blocks[b])) kept.insert(stream.parameters[i].name);
    }
    if (IsBelow(path, blocks.back())) after = i;
  }
  // A tied output layer is a second name of the embedding, which is frozen.
  for (size_t i = after + 1; i < stream.parameters.size(); ++i) {
    if (stream.parameters[i].trained) kept.insert(stream.parameters[i].name);
  }
  const OptimizerRecipe recipe = RecipeOf(stream);
  const Graph graph(stream);
  Edit edit(stream);
  Freeze(graph, kept, {}, {}, &edit);
  Stream edited = std::move(edit).Finish();
  for (Parameter& parameter : edited.parameters) {
    parameter.trained = parameter.trained && kept.contains(parameter.name);
  }
  return Rebuild(edited, recipe);
}

}  // namespace vramtrace::forecast
