#pragma once
// The viewer's data file: a JSON header and little-endian columns, which the page maps to typed arrays
// without a copy. Layout: 8 bytes magic "VTVIEW01", uint64 length of the header, the header, then the
// columns; every part begins at a multiple of 8. The header's "columns" gives each column's name, type,
// offset (from the first column), count, and how it is coded.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace vramtrace::viewer_data {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "columns are written as they lie in memory");

class Columns {
 public:
  void Add(std::string_view name, const std::vector<uint8_t>& values) { AddRaw(name, "u8", values); }
  // `coding` "difference": each value less the one before it, modulo 2^32.
  void Add(std::string_view name, const std::vector<uint32_t>& values, std::string_view coding = "") {
    AddRaw(name, "u32", values);
    if (!coding.empty()) described_.back()["coding"] = coding;
  }
  // Bytes and times: doubles are exact up to 2^53, which is 9 PB and 104 days of nanoseconds.
  void Add(std::string_view name, const std::vector<double>& values) { AddRaw(name, "f64", values); }

  // The file. `header` gets the key "columns".
  [[nodiscard]] std::string Finish(nlohmann::ordered_json header) const;

 private:
  template <typename Value>
  void AddRaw(std::string_view name, std::string_view type, const std::vector<Value>& values) {
    described_.push_back(
        {{"name", name}, {"type", type}, {"offset", bytes_.size()}, {"count", values.size()}});
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value));
    bytes_.append((8 - bytes_.size() % 8) % 8, '\0');
  }

  nlohmann::ordered_json described_ = nlohmann::ordered_json::array();
  std::string bytes_;
};

// Text once, by number. 0 is the empty string.
class Strings {
 public:
  Strings() { (void)Id(""); }
  [[nodiscard]] uint32_t Id(std::string_view text) {
    const auto [entry, added] = ids_.try_emplace(std::string(text), static_cast<uint32_t>(texts_.size()));
    if (added) texts_.emplace_back(text);
    return entry->second;
  }
  [[nodiscard]] const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::unordered_map<std::string, uint32_t> ids_;
  std::vector<std::string> texts_;
};

}  // namespace vramtrace::viewer_data
