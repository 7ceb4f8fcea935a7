#include "analyzer/forecast/technique.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "analyzer/forecast/techniques/rows.h"

namespace vramtrace::forecast {
namespace {

constexpr Technique kTechniques[] = {
#define VRAMTRACE_TECHNIQUE(...) Technique{__VA_ARGS__},
#include "analyzer/forecast/technique.def"
#undef VRAMTRACE_TECHNIQUE
};

// Edits between two words, for the suggestion after a misspelling.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string UnknownTechnique(std::string_view key) {
  std::string near;
  for (const Technique& technique : kTechniques) {
    const bool inside = !key.empty() && technique.key.find(key) != std::string_view::npos;
    if (!inside && Distance(key, technique.key) > std::max<size_t>(2, key.size() / 3)) continue;
    near += (near.empty() ? "" : ", ") + std::string(technique.key);
  }
  if (near.empty()) {
    for (const Technique& technique : kTechniques) {
      near += (near.empty() ? "" : ", ") + std::string(technique.key);
    }
    return fmt::format("there is no technique \"{}\"; there are {}", key, near);
  }
  return fmt::format("there is no technique \"{}\"; did you mean {}?", key, near);
}

// One "name=value". Returns what is wrong, or nothing.
std::string TakeOption(std::string_view key, std::string_view pair, TechniqueOptions* options) {
  const size_t equals = pair.find('=');
  if (equals == std::string_view::npos) {
    return fmt::format("{}: option \"{}\" needs a value, as in \"{}=2\"", key, pair, pair);
  }
  const std::string_view name = pair.substr(0, equals);
  const std::string_view value = pair.substr(equals + 1);
  if (name == "targets") {
    if (value != "linear" && value != "attention") {
      return fmt::format("{}: targets is \"{}\"; it is linear (every linear layer) or attention", key, value);
    }
    options->targets = value;
    return {};
  }
  struct Number {
    std::string_view name;
    uint32_t TechniqueOptions::*field;
    uint32_t least;
    uint32_t most;
  };
  constexpr Number kNumbers[] = {
      {"every", &TechniqueOptions::every, 1, 1000},      {"rank", &TechniqueOptions::rank, 1, 65536},
      {"cards", &TechniqueOptions::cards, 2, 65536},     {"chunks", &TechniqueOptions::chunks, 2, 65536},
      {"blocks", &TechniqueOptions::blocks, 1, 65536},   {"steps", &TechniqueOptions::steps, 2, 1024},
      {"length", &TechniqueOptions::length, 1, 1U << 30}};
  for (const Number& number : kNumbers) {
    if (name != number.name) continue;
    uint32_t read = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), read);
    const bool whole = error == std::errc() && end == value.data() + value.size();
    if (!whole || read < number.least || read > number.most) {
      return fmt::format("{}: {} is \"{}\"; it is a number from {} to {}", key, name, value, number.least,
                         number.most);
    }
    options->*number.field = read;
    return {};
  }
  return fmt::format(
      "{}: there is no option \"{}\"; there are every, rank, targets, cards, chunks, blocks, "
      "steps and length",
      key, name);
}

size_t PlaceOf(const Technique* technique) { return static_cast<size_t>(technique - kTechniques); }

}  // namespace

std::span<const Technique> Techniques() { return kTechniques; }

const Technique* FindTechnique(std::string_view key) {
  const auto* const found = std::find_if(std::begin(kTechniques), std::end(kTechniques),
                                         [&](const Technique& technique) { return technique.key == key; });
  return found == std::end(kTechniques) ? nullptr : found;
}

std::variant<Chosen, std::string> ParseTechnique(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view key = text.substr(0, colon);
  Chosen chosen{FindTechnique(key), {}};
  if (chosen.technique == nullptr) return UnknownTechnique(key);
  std::string_view rest = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string wrong = TakeOption(key, rest.substr(0, comma), &chosen.options);
    if (!wrong.empty()) return wrong;
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return chosen;
}

std::variant<Stream, std::string> ApplyTechniques(const Stream& stream, std::span<const Chosen> chosen) {
  std::vector<Chosen> ordered(chosen.begin(), chosen.end());
  std::stable_sort(ordered.begin(), ordered.end(), [](const Chosen& a, const Chosen& b) {
    return PlaceOf(a.technique) < PlaceOf(b.technique);
  });
  Stream edited = stream;
  for (const Chosen& one : ordered) {
    const auto failed = [&](std::string_view why) {
      return fmt::format("{} cannot be applied: {}", one.technique->key, why);
    };
    if (one.technique->is_on(edited)) return failed("the run has it on already");
    Edited result = one.technique->apply(edited, one.options);
    if (auto* why = std::get_if<std::string>(&result)) return failed(*why);
    edited = std::move(std::get<Stream>(result));
  }
  return edited;
}

}  // namespace vramtrace::forecast
