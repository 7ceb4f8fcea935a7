#include <algorithm>
#include <cctype>
#include <utility>

#include "preload/catalogue/catalogue.h"
#include "preload/catalogue/csv.h"
#include "preload/catalogue/data.h"
#include "preload/catalogue/edit_distance.h"

namespace vramtrace::catalogue {
namespace {

// What is left of a name for comparison: lower-case letters and digits without the vendor's prefixes.
std::string Key(std::string_view name) {
  std::string key;
  for (char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c))) {
      key += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  for (std::string_view prefix : {"nvidia", "geforce", "tesla"}) {
    if (key.starts_with(prefix) && key.size() > prefix.size()) key.erase(0, prefix.size());
  }
  return key;
}

const Gpu* FindById(std::string_view id) {
  for (const Gpu& gpu : Gpus()) {
    if (gpu.id == id) return &gpu;
  }
  return nullptr;
}

const std::vector<std::pair<std::string, const Gpu*>>& Keys() {
  static const auto* keys = [] {
    auto* all = new std::vector<std::pair<std::string, const Gpu*>>;
    for (const Gpu& gpu : Gpus()) all->emplace_back(Key(gpu.id), &gpu);
    for (const Gpu& gpu : Gpus()) all->emplace_back(Key(gpu.device_name), &gpu);
    CsvTable aliases(data::kAliases);
    for (size_t row = 0; row < aliases.size(); ++row) {
      if (const Gpu* gpu = FindById(aliases.Field(row, "id"))) {
        all->emplace_back(Key(aliases.Field(row, "alias")), gpu);
      }
    }
    return all;
  }();
  return *keys;
}

const Gpu* FindByKey(const std::string& key) {
  for (const auto& [candidate, gpu] : Keys()) {
    if (candidate == key) return gpu;
  }
  return nullptr;
}

// Smaller is nearer. A name that holds the other one whole ("rtx 4090 ti") is nearer than its length says.
size_t Distance(const std::string& wanted, const std::string& candidate) {
  size_t distance = EditDistance(wanted, candidate) * 2;
  bool inside = candidate.find(wanted) != std::string::npos || wanted.find(candidate) != std::string::npos;
  return inside ? distance / 2 : distance;
}

}  // namespace

size_t EditDistance(std::string_view left, std::string_view right) {
  std::vector<size_t> row(right.size() + 1);
  for (size_t j = 0; j <= right.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= left.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= right.size(); ++j) {
      size_t replaced = diagonal + (left[i - 1] == right[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

const Gpu* FindGpu(std::string_view name) {
  std::string key = Key(name);
  if (key.empty()) return nullptr;
  if (const Gpu* gpu = FindByKey(key)) return gpu;
  return FindByKey("rtx" + key);  // 4090
}

std::vector<std::string_view> NearNames(std::string_view name, size_t count) {
  std::string wanted = Key(name);
  std::vector<std::pair<size_t, const Gpu*>> nearest;
  for (const auto& key : Keys()) {
    size_t distance = std::min(Distance(wanted, key.first), Distance("rtx" + wanted, key.first));
    auto known = std::find_if(nearest.begin(), nearest.end(),
                              [&](const auto& entry) { return entry.second == key.second; });
    if (known == nearest.end()) {
      nearest.emplace_back(distance, key.second);
    } else {
      known->first = std::min(known->first, distance);
    }
  }
  std::stable_sort(nearest.begin(), nearest.end(),
                   [](const auto& left, const auto& right) { return left.first < right.first; });
  std::vector<std::string_view> names;
  for (size_t i = 0; i < std::min(count, nearest.size()); ++i) names.push_back(nearest[i].second->id);
  return names;
}

std::string UnknownGpuMessage(std::string_view name) {
  std::string message = "unknown GPU '" + std::string(name) + "'; near names: ";
  bool first = true;
  for (std::string_view near : NearNames(name)) {
    if (!first) message += ", ";
    message += near;
    first = false;
  }
  return message + " (all of them: vramtrace gpus)";
}

}  // namespace vramtrace::catalogue
