#pragma once
// Labels of a trace, joined to the blocks that they name.

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analyzer/timeline/scan.h"
#include "analyzer/timeline/snapshot.h"

namespace vramtrace::attribution {

// The labels of one block, strongest kind first; each (kind, name, key) once.
struct BlockLabels {
  std::vector<const timeline::LabelRow*> rows;
};

// By index into `snapshot.blocks`. A label belongs to the block that holds its address while the block lives.
[[nodiscard]] std::vector<BlockLabels> JoinLabels(const timeline::Scan& scan,
                                                  const timeline::Snapshot& snapshot);

// A parameter by the module that owns it.
struct ParameterSize {
  model::StringId name{};
  model::StringId dtype{};
  uint64_t bytes = 0;
};

// Sizes of the parameters that a module owns directly, for the size laws.
class ParameterSizes {
 public:
  ParameterSizes(const model::Tables& tables, const timeline::Scan& scan);
  // The parameter of `module_path` whose size is `bytes` * `numerator` / `denominator`; nullptr: none.
  [[nodiscard]] const ParameterSize* Find(std::string_view module_path, uint64_t bytes,
                                          uint64_t numerator = 1, uint64_t denominator = 1) const;
  // No parameter is named: labels are off, or the program has no module.
  [[nodiscard]] bool empty() const { return by_module_.empty(); }

 private:
  std::unordered_map<std::string, std::vector<ParameterSize>> by_module_;
};

}  // namespace vramtrace::attribution
