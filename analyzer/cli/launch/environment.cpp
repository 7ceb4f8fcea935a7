#include "analyzer/cli/launch/environment.h"

#include <algorithm>

namespace vramtrace::launch {

Environment::Environment(const char* const* entries) {
  for (; entries != nullptr && *entries != nullptr; ++entries) entries_.emplace_back(*entries);
}

std::vector<std::string>::const_iterator Environment::Find(std::string_view name) const {
  return std::find_if(entries_.begin(), entries_.end(), [&](const std::string& entry) {
    return entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name);
  });
}

std::optional<std::string_view> Environment::Get(std::string_view name) const {
  const auto entry = Find(name);
  if (entry == entries_.end()) return std::nullopt;
  return std::string_view(*entry).substr(name.size() + 1);
}

void Environment::Set(std::string_view name, std::string_view value) {
  std::string entry(name);
  entry.append("=").append(value);
  const auto found = Find(name);
  if (found == entries_.end()) {
    entries_.push_back(std::move(entry));
  } else {
    entries_[static_cast<size_t>(found - entries_.begin())] = std::move(entry);
  }
}

void Environment::SetDefault(std::string_view name, std::string_view value) {
  if (Find(name) == entries_.end()) Set(name, value);
}

void Environment::Remove(std::string_view name) {
  const auto found = Find(name);
  if (found != entries_.end()) entries_.erase(found);
}

std::optional<std::string> Environment::Preload(const std::vector<std::string>& libraries) {
  std::vector<std::string> all;
  for (const std::string& library : libraries) {
    if (library.find_first_of(" :\t\n") != std::string::npos) return library;
    all.push_back(library);
  }
  const std::string before(Get("LD_PRELOAD").value_or(""));
  for (size_t begin = 0; begin < before.size();) {
    const size_t end = std::min(before.find_first_of(": ", begin), before.size());
    std::string library = before.substr(begin, end - begin);
    if (!library.empty() && std::find(all.begin(), all.end(), library) == all.end()) {
      all.push_back(std::move(library));
    }
    begin = end + 1;
  }
  std::string value;
  for (const std::string& library : all) {
    if (!value.empty()) value += ':';
    value += library;
  }
  Set("LD_PRELOAD", value);
  return std::nullopt;
}

std::vector<char*> Environment::Pointers() {
  std::vector<char*> pointers;
  pointers.reserve(entries_.size() + 1);
  for (std::string& entry : entries_) pointers.push_back(entry.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace vramtrace::launch
