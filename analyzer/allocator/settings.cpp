#include "analyzer/allocator/settings.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <optional>
#include <span>
#include <utility>

namespace vramtrace::allocator {
namespace {

using Tokens = std::vector<std::string>;

// The values of one option: one token, or what stands between brackets.
struct Value {
  std::span<const std::string> tokens;
  bool list = false;
};

// What was expected instead, or nothing.
using Complaint = std::optional<std::string>;

Tokens Split(std::string_view text) {
  Tokens tokens;
  std::string token;
  const auto finish = [&] {
    if (!token.empty()) tokens.push_back(std::exchange(token, {}));
  };
  for (const char c : text) {
    if (c == ',' || c == ':' || c == '[' || c == ']') {
      finish();
      tokens.emplace_back(1, c);
    } else if (std::isspace(static_cast<unsigned char>(c)) == 0) {
      token += c;
    }
  }
  finish();
  return tokens;
}

// What follows the digits is ignored, as std::stoull and std::stod do for PyTorch.
template <typename Number>
std::optional<Number> ToNumber(const Value& value) {
  if (value.list || value.tokens.size() != 1) return std::nullopt;
  const std::string& text = value.tokens.front();
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} ? std::optional(number) : std::nullopt;
}

Complaint ReadMebibytes(const Value& value, Bytes least, Bytes& bytes) {
  const std::optional<Bytes> mebibytes = ToNumber<Bytes>(value);
  if (!mebibytes || *mebibytes < least) return "a number of MiB of at least " + std::to_string(least);
  bytes = std::min(*mebibytes, kUnlimited / kMiB) * kMiB;
  return {};
}

Complaint ReadFlag(const Value& value, bool& flag) {
  const bool one = !value.list && value.tokens.size() == 1;
  if (!one || (value.tokens[0] != "True" && value.tokens[0] != "False")) return "True or False";
  flag = value.tokens[0] == "True";
  return {};
}

std::optional<Bytes> Whole(const std::string& token) {
  return ToNumber<Bytes>(Value{std::span(&token, 1), false});
}

// "[256:1,512:2,>:8]": the first interval's number holds for all below it too, ">" for those above the last
// one.
Complaint ReadDivisionList(const Value& value, bool open_interval_includes_last,
                           PowerOfTwoDivisions& divisions) {
  Complaint form = "powers of two as in [256:1,512:2,>:4]";
  std::size_t last = 0;
  bool first = true;
  for (std::size_t i = 0; i < value.tokens.size(); i += 4) {
    if (i + 2 >= value.tokens.size() || value.tokens[i + 1] != ":") return form;
    if (i + 3 < value.tokens.size() && value.tokens[i + 3] != ",") return form;
    const std::optional<Bytes> parts = Whole(value.tokens[i + 2]);
    if (!parts || (*parts != 0 && !std::has_single_bit(*parts))) return form;
    if (value.tokens[i] == ">") {
      const std::size_t from = open_interval_includes_last ? last : last + 1;
      std::fill(divisions.begin() + static_cast<std::ptrdiff_t>(std::min(from, divisions.size())),
                divisions.end(), *parts);
      continue;
    }
    const std::optional<Bytes> interval = Whole(value.tokens[i]);
    if (!interval || !std::has_single_bit(*interval)) return form;
    last = std::min<std::size_t>(std::bit_width(*interval) - 1, divisions.size() - 1);
    if (first) std::fill(divisions.begin(), divisions.begin() + static_cast<std::ptrdiff_t>(last), *parts);
    divisions[last] = *parts;
    first = false;
  }
  return {};
}

Complaint ReadDivisions(const Value& value, const VersionRules& rules, Settings& settings) {
  PowerOfTwoDivisions& divisions = settings.power_of_two_divisions;
  if (value.list) return ReadDivisionList(value, rules.open_interval_includes_last, divisions);
  const std::optional<Bytes> parts = ToNumber<Bytes>(value);
  if (!parts || !std::has_single_bit(*parts)) return "a power of two, or a list as in [256:1,512:2,>:4]";
  divisions.fill(*parts);
  return {};
}

Complaint ReadThreshold(const Value& value, const VersionRules&, Settings& settings) {
  const std::optional<double> threshold = ToNumber<double>(value);
  if (!threshold || !(*threshold > 0 && *threshold < 1)) return "a number above 0 and below 1";
  settings.garbage_collection_threshold = *threshold;
  return {};
}

Complaint ReadFraction(const Value& value, const VersionRules&, Settings& settings) {
  const std::optional<double> fraction = ToNumber<double>(value);
  if (!fraction || !(*fraction >= 0 && *fraction <= 1)) return "a number from 0 to 1";
  settings.memory_fraction = *fraction;
  settings.fraction_given = true;
  return {};
}

Complaint ReadBackend(const Value& value, const VersionRules&, Settings& settings) {
  const bool one = !value.list && value.tokens.size() == 1;
  if (!one || (value.tokens[0] != "native" && value.tokens[0] != "cudaMallocAsync")) {
    return "native or cudaMallocAsync";
  }
  settings.native_backend = value.tokens[0] == "native";
  return {};
}

constexpr std::string_view kLargeSegmentOption = "large_segment_size_mb";

// An option of the allocator: the release that brought it and what it does. Without a reader it does not
// change the device's memory.
struct Option {
  std::string_view name;
  PyTorchVersion since;
  Complaint (*read)(const Value&, const VersionRules&, Settings&);
};

constexpr Option kOptions[] = {
    {"backend", {2, 0}, ReadBackend},
    {"max_split_size_mb",
     {2, 0},
     [](const Value& value, const VersionRules&, Settings& settings) {
       return ReadMebibytes(value, settings.large_segment / kMiB, settings.max_split);
     }},
    {"garbage_collection_threshold", {2, 0}, ReadThreshold},
    {"roundup_power2_divisions", {2, 0}, ReadDivisions},
    {"expandable_segments",
     {2, 1},
     [](const Value& value, const VersionRules&, Settings& settings) {
       return ReadFlag(value, settings.expandable_segments);
     }},
    {"release_lock_on_cudamalloc", {2, 2}, nullptr},
    {"pinned_use_cuda_host_register", {2, 2}, nullptr},
    {"pinned_num_register_threads", {2, 2}, nullptr},
    {"pinned_use_background_threads", {2, 6}, nullptr},
    {"max_non_split_rounding_mb",
     {2, 6},
     [](const Value& value, const VersionRules&, Settings& settings) {
       return ReadMebibytes(value, settings.large_segment / kMiB, settings.max_non_split_rounding);
     }},
    {"graph_capture_record_stream_reuse", {2, 9}, nullptr},
    {"per_process_memory_fraction", {2, 10}, ReadFraction},
    {"pinned_reserve_segment_size_mb", {2, 10}, nullptr},
    {"large_segment_size_mb",
     {2, 11},
     [](const Value& value, const VersionRules&, Settings& settings) {
       return ReadMebibytes(value, 11, settings.large_segment);
     }},
    {"throw_on_cudamalloc_oom",
     {2, 12},
     [](const Value& value, const VersionRules&, Settings& settings) {
       return ReadFlag(value, settings.reject_above_fraction);
     }},
    {"pinned_free_catch_all", {2, 12}, nullptr},
    {"pinned_max_round_threshold_mb", {2, 13}, nullptr},
    {"pinned_max_cached_size_mb", {2, 13}, nullptr},
    {"expandable_segments_reserve", {2, 15}, nullptr},
    {"expandable_segments_reserve_by_class", {2, 15}, nullptr},
};

const Option* FindOption(std::string_view name) {
  const auto* option = std::find_if(std::begin(kOptions), std::end(kOptions),
                                    [&](const Option& row) { return row.name == name; });
  return option == std::end(kOptions) ? nullptr : option;
}

// Reads the value that starts at `position` and moves behind it.
std::optional<Value> TakeValue(const Tokens& tokens, std::size_t& position) {
  if (position >= tokens.size()) return std::nullopt;
  const std::span<const std::string> all(tokens);
  if (tokens[position] != "[") return Value{all.subspan(position++, 1), false};
  const auto close = std::find(tokens.begin() + static_cast<std::ptrdiff_t>(position), tokens.end(), "]");
  if (close == tokens.end()) return std::nullopt;
  const std::size_t end = static_cast<std::size_t>(close - tokens.begin());
  const Value value{all.subspan(position + 1, end - position - 1), true};
  position = end + 1;
  return value;
}

// What every parse sets back before it reads.
Settings Defaults(const VersionRules& rules, const Settings& before) {
  Settings settings = before;
  const Settings fresh;
  settings.max_split = fresh.max_split;
  settings.power_of_two_divisions = fresh.power_of_two_divisions;
  settings.garbage_collection_threshold = fresh.garbage_collection_threshold;
  if (rules.parse_resets_non_split_rounding) settings.max_non_split_rounding = settings.large_segment;
  settings.without_effect.clear();
  settings.fraction_given = false;
  return settings;
}

struct Entry {
  const Option* option;
  Value value;
};

std::variant<std::vector<Entry>, SettingsError> ReadEntries(const Tokens& tokens, const VersionRules& rules) {
  std::vector<Entry> entries;
  std::size_t position = 0;
  while (position < tokens.size()) {
    const std::string& name = tokens[position++];
    const Option* option = FindOption(name);
    if (option == nullptr) return SettingsError{name, "an option of the caching allocator"};
    if (rules.version < option->since) {
      return SettingsError{name, "PyTorch " + std::to_string(option->since.major) + "." +
                                     std::to_string(option->since.minor) +
                                     " or later, which has this option"};
    }
    if (position >= tokens.size() || tokens[position++] != ":")
      return SettingsError{name, "a colon and a value"};
    const std::optional<Value> value = TakeValue(tokens, position);
    if (!value) return SettingsError{name, "a value"};
    entries.push_back({option, *value});
    if (position < tokens.size() && tokens[position++] != ",") return SettingsError{name, "a comma after it"};
  }
  return entries;
}

}  // namespace

std::variant<Settings, SettingsError> ParseSettings(std::string_view text, const VersionRules& rules,
                                                    const Settings& before) {
  const Tokens tokens = Split(text);
  auto read = ReadEntries(tokens, rules);
  if (auto* error = std::get_if<SettingsError>(&read)) return *error;
  std::vector<Entry>& entries = std::get<std::vector<Entry>>(read);
  // The size of large segments is the least and the default of other options, wherever it stands in the text.
  Settings settings = before;
  for (const Entry& entry : entries) {
    if (entry.option->name != kLargeSegmentOption) continue;
    if (Complaint complaint = entry.option->read(entry.value, rules, settings)) {
      return SettingsError{std::string(entry.option->name), *std::move(complaint)};
    }
  }
  settings = Defaults(rules, settings);
  for (const Entry& entry : entries) {
    if (entry.option->read == nullptr) {
      settings.without_effect.emplace_back(entry.option->name);
    } else if (Complaint complaint = entry.option->read(entry.value, rules, settings)) {
      return SettingsError{std::string(entry.option->name), *std::move(complaint)};
    }
  }
  return settings;
}

std::vector<std::string_view> OptionNames(const VersionRules& rules) {
  std::vector<std::string_view> names;
  for (const Option& option : kOptions) {
    if (option.since <= rules.version) names.push_back(option.name);
  }
  return names;
}

}  // namespace vramtrace::allocator
