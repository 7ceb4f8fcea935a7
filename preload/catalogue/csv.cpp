#include "preload/catalogue/csv.h"

#include <utility>

namespace vramtrace::catalogue {
namespace {

std::vector<std::string> SplitLine(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    char c = line[i];
    if (quoted) {
      if (c != '"') {
        fields.back() += c;
      } else if (i + 1 < line.size() && line[i + 1] == '"') {
        fields.back() += '"';
        ++i;
      } else {
        quoted = false;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      fields.emplace_back();
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  return fields;
}

}  // namespace

CsvTable::CsvTable(std::string_view text) {
  while (!text.empty()) {
    size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty()) continue;
    if (columns_.empty()) {
      columns_ = SplitLine(line);
    } else {
      rows_.push_back(SplitLine(line));
    }
  }
}

std::string_view CsvTable::Field(size_t row, std::string_view column) const {
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i] == column) return i < rows_[row].size() ? std::string_view(rows_[row][i]) : "";
  }
  return "";
}

}  // namespace vramtrace::catalogue
