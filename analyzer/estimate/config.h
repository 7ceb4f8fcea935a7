#pragma once
// A Hugging Face config.json, which anybody may have written: every number is checked against what a model
// can be, and the first one that is wrong is the error. Nothing in it is ever run.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "analyzer/trace/result.h"

namespace vramtrace::estimate {

// The largest values that any field may have; products of two of them fit 64 bits.
inline constexpr uint64_t kMostLayers = 4096;
inline constexpr uint64_t kMostWidth = 1 << 20;
inline constexpr uint64_t kMostRows = 1 << 26;  // vocabulary, positions

class Config {
 public:
  [[nodiscard]] static trace::Result<Config> Parse(std::string_view text, const std::string& file);
  // A file, or a folder that has a config.json.
  [[nodiscard]] static trace::Result<Config> Load(const std::string& path);

  [[nodiscard]] const std::string& file() const { return file_; }
  // Empty where there is none.
  [[nodiscard]] std::string Text(std::string_view key) const;
  [[nodiscard]] std::string ModelType() const { return Text("model_type"); }
  // The first of "architectures".
  [[nodiscard]] std::string ArchitectureName() const;

  // A whole number from `least` to `most`. Missing, null, negative, a fraction, or too large: the error is
  // kept, and `least` is returned.
  uint64_t Whole(std::string_view key, uint64_t least, uint64_t most);
  // The same, `otherwise` where the key is missing or null.
  uint64_t WholeOr(std::string_view key, uint64_t otherwise, uint64_t least, uint64_t most);
  double NumberOr(std::string_view key, double otherwise, double least, double most);
  bool FlagOr(std::string_view key, bool otherwise);
  [[nodiscard]] bool Has(std::string_view key) const;

  // Of a classifier: "num_labels", or as many as "id2label" names, or 2.
  uint64_t Labels();

  // An object inside (text_config), with the same file.
  [[nodiscard]] std::optional<Config> Inner(std::string_view key) const;

  void Refuse(std::string_view key, std::string message);
  [[nodiscard]] const std::optional<trace::Error>& error() const { return error_; }

 private:
  Config(nlohmann::json json, std::string file, std::string inside)
      : json_(std::move(json)), file_(std::move(file)), inside_(std::move(inside)) {}
  uint64_t Checked(std::string_view key, const nlohmann::json& value, uint64_t least, uint64_t most);

  nlohmann::json json_;
  std::string file_;
  std::string inside_;  // "text_config." for an inner object
  std::optional<trace::Error> error_;
};

}  // namespace vramtrace::estimate
