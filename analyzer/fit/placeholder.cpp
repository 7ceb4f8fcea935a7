#include "analyzer/fit/placeholder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

namespace vramtrace::fit {
namespace {

bool IsNameCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Names in braces. JSON on a command line ("{\"a\": 1}") is none.
std::set<std::string> NamesIn(std::string_view word) {
  std::set<std::string> names;
  for (size_t open = word.find('{'); open != std::string_view::npos; open = word.find('{', open + 1)) {
    const size_t close = word.find('}', open);
    if (close == std::string_view::npos) break;
    const std::string_view name = word.substr(open + 1, close - open - 1);
    if (!name.empty() && std::all_of(name.begin(), name.end(), IsNameCharacter)) names.emplace(name);
  }
  return names;
}

void ReplaceAll(std::string* text, std::string_view what, std::string_view by) {
  for (size_t at = text->find(what); at != std::string::npos; at = text->find(what, at + by.size())) {
    text->replace(at, what.size(), by);
  }
}

bool NamesTheBatch(std::string_view option) {
  std::string lower(option);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower.starts_with('-') && lower.find("batch") != std::string::npos;
}

}  // namespace

std::variant<Placeholder, std::string> FindPlaceholder(std::span<const std::string> command,
                                                       std::string_view asked) {
  std::set<std::string> names;
  for (const std::string& word : command) names.merge(NamesIn(word));
  if (names.empty()) {
    return fmt::format(
        "the command has no placeholder; write {{{}}} where the value goes: python train.py --batch "
        "{{batch}}",
        asked.empty() ? "batch" : asked);
  }
  if (!asked.empty()) {
    if (names.contains(std::string(asked))) return Placeholder{std::string(asked)};
    return fmt::format("the command has no {{{}}}, but {{{}}}", asked, fmt::join(names, "} and {"));
  }
  if (names.size() == 1) return Placeholder{*names.begin()};
  if (names.contains("batch")) return Placeholder{"batch"};
  return fmt::format("the command has several placeholders, {{{}}}; say which with --vary",
                     fmt::join(names, "} and {"));
}

std::vector<std::string> Fill(std::span<const std::string> command, std::string_view name, uint64_t value) {
  std::vector<std::string> filled(command.begin(), command.end());
  const std::string placeholder = fmt::format("{{{}}}", name);
  const std::string text = std::to_string(value);
  for (std::string& word : filled) ReplaceAll(&word, placeholder, text);
  return filled;
}

std::variant<std::vector<std::string>, std::string> WithPlaceholder(std::span<const std::string> command,
                                                                    uint64_t batch) {
  const std::string value = std::to_string(batch);
  std::vector<std::string> filled(command.begin(), command.end());
  int found = 0;
  for (size_t at = 0; at < filled.size(); ++at) {
    std::string& word = filled[at];
    const size_t equals = word.find('=');
    if (equals != std::string::npos && NamesTheBatch(word.substr(0, equals)) &&
        word.substr(equals + 1) == value) {
      word = word.substr(0, equals + 1) + "{batch}";
      ++found;
    } else if (at > 0 && NamesTheBatch(filled[at - 1]) && word == value) {
      word = "{batch}";
      ++found;
    }
  }
  if (found == 1) return filled;
  return fmt::format(
      "the recorded command has {} with \"batch\" in its name and the value {}; give the command with the "
      "placeholder: -- python train.py --batch {{batch}}",
      found == 0 ? "no option" : "several options", batch);
}

}  // namespace vramtrace::fit
