#include "analyzer/report/table.h"

#include <algorithm>

namespace vramtrace::report {
namespace {

constexpr std::string_view kIndent = "  ";
constexpr std::string_view kGap = "  ";

// Start of the character that is `columns` characters behind `from`.
size_t ByteOfColumn(std::string_view text, size_t columns) {
  size_t at = 0;
  while (at < text.size() && columns > 0) {
    ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) ++at;
    --columns;
  }
  return at;
}

}  // namespace

size_t DisplayWidth(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string CutEnd(std::string_view text, size_t width) {
  if (DisplayWidth(text) <= width || width < 4) return std::string(text);
  return std::string(text.substr(0, ByteOfColumn(text, width - 3))) + "...";
}

std::string CutMiddle(std::string_view text, size_t width) {
  const size_t columns = DisplayWidth(text);
  if (columns <= width || width < 5) return std::string(text);
  const size_t head = (width - 3) / 2;
  const size_t tail = width - 3 - head;
  return std::string(text.substr(0, ByteOfColumn(text, head))) + "..." +
         std::string(text.substr(ByteOfColumn(text, columns - tail)));
}

std::string Wrap(std::string_view text, size_t width, size_t indent) {
  std::string wrapped;
  size_t column = 0;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find(' ', at);
    if (end == std::string_view::npos) end = text.size();
    const std::string_view word = text.substr(at, end - at);
    const size_t columns = DisplayWidth(word);
    if (column > 0 && column + 1 + columns > width - indent) {
      wrapped += "\n" + std::string(indent, ' ');
      column = 0;
    }
    if (column > 0) {
      wrapped += ' ';
      ++column;
    }
    wrapped += word;
    column += columns;
    at = end + 1;
  }
  return wrapped;
}

std::string Table::Render(size_t width) const {
  std::vector<size_t> widths(columns_.size(), 0);
  for (const std::vector<std::string>& row : rows_) {
    for (size_t i = 0; i < row.size() && i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], DisplayWidth(row[i]));
    }
  }
  std::string text;
  for (const std::vector<std::string>& row : rows_) {
    std::string line(kIndent);
    for (size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += kGap;
      const bool last = i + 1 == row.size();
      const size_t room = width > DisplayWidth(line) ? width - DisplayWidth(line) : 0;
      const std::string cell = last ? CutMiddle(row[i], room) : row[i];
      const std::string padding(widths[i] - std::min(widths[i], DisplayWidth(cell)), ' ');
      line += columns_[i] == Align::kRight ? padding + cell : cell + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace vramtrace::report
