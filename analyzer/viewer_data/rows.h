#pragma once
// The table of blocks in a data file: one row a block, a column a field.

#include <cstdint>
#include <vector>

#include "analyzer/attribution/lives.h"
#include "analyzer/viewer_data/tables.h"

namespace vramtrace::viewer_data {

class Rows {
 public:
  Rows(UsedStacks* stacks, Strings* strings) : stacks_(stacks), strings_(strings) {}
  void Add(const attribution::Life& life);
  [[nodiscard]] size_t size() const { return bytes_.size(); }
  // Columns "block.*".
  void Write(Columns* columns) const;

 private:
  UsedStacks* stacks_;
  Strings* strings_;
  std::vector<uint8_t> device_, class_, confidence_, phase_;
  std::vector<uint32_t> allocated_, freed_, step_, stack_, forward_stack_;
  std::vector<uint32_t> title_, names_, module_, module_class_, evidence_, rule_, operator_, dtype_, shape_;
  std::vector<double> address_, bytes_, block_bytes_, sequence_;
};

}  // namespace vramtrace::viewer_data
