#include "analyzer/estimate/config.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>

namespace vramtrace::estimate {
namespace {

using nlohmann::json;
constexpr size_t kMostBytes = 16u << 20;
constexpr int kMostDepth = 64;

// A value as a message shows it: short, and printable whatever is in it.
std::string Shown(const json& value) {
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

}  // namespace

trace::Result<Config> Config::Parse(std::string_view text, const std::string& file) {
  bool too_deep = false;
  const auto depth_guard = [&](int depth, json::parse_event_t, json&) {
    too_deep |= depth > kMostDepth;
    return !too_deep;
  };
  if (text.size() > kMostBytes)
    return trace::Error{file, std::nullopt, "larger than 16 MiB, which no config.json is"};
  try {
    json parsed = json::parse(text, depth_guard, true);
    if (too_deep) return trace::Error{file, std::nullopt, "nested deeper than 64 levels"};
    if (!parsed.is_object()) return trace::Error{file, 0, "a JSON object was expected"};
    return Config(std::move(parsed), file, "");
  } catch (const json::parse_error& error) {
    const uint64_t at = error.byte > 0 ? error.byte - 1 : 0;
    return trace::Error{file, at, "not JSON from here on; a Hugging Face config.json was expected"};
  } catch (const json::exception&) {
    return trace::Error{file, std::nullopt, "not a config.json: a number in it cannot be held"};
  }
}

trace::Result<Config> Config::Load(const std::string& path) {
  std::error_code error;
  std::string file = path;
  if (std::filesystem::is_directory(path, error))
    file = (std::filesystem::path(path) / "config.json").string();
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    return trace::Error{file, std::nullopt,
                        "cannot be read; expected a config.json, a folder with one, or a size such as 7b"};
  }
  std::string text(kMostBytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(stream.gcount()));
  return Parse(text, file);
}

bool Config::Has(std::string_view key) const {
  const auto found = json_.find(key);
  return found != json_.end() && !found->is_null();
}

std::string Config::Text(std::string_view key) const {
  const auto found = json_.find(key);
  return found != json_.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string Config::ArchitectureName() const {
  const auto found = json_.find("architectures");
  if (found == json_.end() || !found->is_array() || found->empty() || !found->front().is_string()) return "";
  return found->front().get<std::string>();
}

void Config::Refuse(std::string_view key, std::string message) {
  if (error_) return;
  error_ =
      trace::Error{file_, std::nullopt, fmt::format("field '{}{}': {}", inside_, key, std::move(message))};
}

uint64_t Config::Checked(std::string_view key, const json& value, uint64_t least, uint64_t most) {
  // 1e9 or 4096.0 is a whole number too.
  const bool whole = value.is_number_integer() ||
                     (value.is_number_float() && std::floor(value.get<double>()) == value.get<double>());
  const double size = value.is_number() ? value.get<double>() : 0;
  if (!whole || !(size >= static_cast<double>(least) && size <= static_cast<double>(most))) {
    Refuse(key,
           fmt::format("{} was found, a whole number from {} to {} was expected", Shown(value), least, most));
    return least;
  }
  return static_cast<uint64_t>(size);
}

uint64_t Config::Whole(std::string_view key, uint64_t least, uint64_t most) {
  if (!Has(key)) {
    Refuse(key, fmt::format("is missing; a whole number from {} to {} was expected", least, most));
    return least;
  }
  return Checked(key, json_[std::string(key)], least, most);
}

uint64_t Config::WholeOr(std::string_view key, uint64_t otherwise, uint64_t least, uint64_t most) {
  return Has(key) ? Whole(key, least, most) : otherwise;
}

double Config::NumberOr(std::string_view key, double otherwise, double least, double most) {
  if (!Has(key)) return otherwise;
  const json& value = json_[std::string(key)];
  if (!value.is_number() || !(value.get<double>() >= least && value.get<double>() <= most)) {
    Refuse(key,
           fmt::format("{} was found, a number from {:g} to {:g} was expected", Shown(value), least, most));
    return otherwise;
  }
  return value.get<double>();
}

bool Config::FlagOr(std::string_view key, bool otherwise) {
  if (!Has(key)) return otherwise;
  const json& value = json_[std::string(key)];
  if (!value.is_boolean()) {
    Refuse(key, fmt::format("{} was found, true or false was expected", Shown(value)));
    return otherwise;
  }
  return value.get<bool>();
}

uint64_t Config::Labels() {
  const auto names = json_.find("id2label");
  const bool named = names != json_.end() && names->is_object() && !names->empty();
  return WholeOr("num_labels", named ? names->size() : 2, 1, kMostWidth);
}

std::optional<Config> Config::Inner(std::string_view key) const {
  const auto found = json_.find(key);
  if (found == json_.end() || !found->is_object()) return std::nullopt;
  return Config(*found, file_, inside_ + std::string(key) + ".");
}

}  // namespace vramtrace::estimate
