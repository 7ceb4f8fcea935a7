#pragma once
// Reads a viewer's data file back, as the page does.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace vramtrace::testing {

class DataFile {
 public:
  explicit DataFile(std::string bytes);

  [[nodiscard]] const nlohmann::json& header() const { return header_; }
  // The column's values, decoded; empty when there is none of that name. "block.X" of what a block's kind
  // says is that of each block.
  [[nodiscard]] std::vector<double> Column(const std::string& name) const;
  [[nodiscard]] std::string Text(double id) const;
  // Rows of blocks that are alive on `device` after the event `tick`.
  [[nodiscard]] std::vector<size_t> Alive(uint32_t device, uint32_t tick) const;
  // The tick of the mark of that kind; -1: none.
  [[nodiscard]] int64_t Mark(uint32_t device, const std::string& kind) const;

 private:
  [[nodiscard]] std::vector<double> Raw(const std::string& name) const;

  std::string bytes_;
  size_t first_column_ = 0;
  nlohmann::json header_;
};

}  // namespace vramtrace::testing
