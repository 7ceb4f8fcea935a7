#pragma once
// Rows of text in aligned columns.

#include <string>
#include <string_view>
#include <vector>

namespace vramtrace::report {

class Table {
 public:
  enum class Align { kLeft, kRight };
  explicit Table(std::vector<Align> columns) : columns_(std::move(columns)) {}

  void Add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  // Every row, indented by two, columns two apart, no trailing blanks. Cells of the last column are cut at
  // `width`.
  [[nodiscard]] std::string Render(size_t width = 100) const;

 private:
  std::vector<Align> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Columns that `text` takes on a terminal, taking every character for one wide.
[[nodiscard]] size_t DisplayWidth(std::string_view text);

// `text` broken at blanks so that no line is wider than `width`; lines after the first begin with `indent`
// blanks.
[[nodiscard]] std::string Wrap(std::string_view text, size_t width, size_t indent);

// The end replaced by "..." where `text` is wider than `width`.
[[nodiscard]] std::string CutEnd(std::string_view text, size_t width);

// The middle replaced by "..." where `text` is wider than `width`.
[[nodiscard]] std::string CutMiddle(std::string_view text, size_t width);

}  // namespace vramtrace::report
