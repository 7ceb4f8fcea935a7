#pragma once
// The reader of the catalogue's own files: RFC 4180 fields on one line each (quotes, doubled quotes), a
// header row that names the columns.

#include <string>
#include <string_view>
#include <vector>

namespace vramtrace::catalogue {

class CsvTable {
 public:
  explicit CsvTable(std::string_view text);

  [[nodiscard]] size_t size() const { return rows_.size(); }
  // Empty when there is no such column or the field is missing.
  [[nodiscard]] std::string_view Field(size_t row, std::string_view column) const;

 private:
  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace vramtrace::catalogue
