#pragma once
// What a user reads of the checks.

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "analyzer/doctor/checks.h"

namespace vramtrace::doctor {

struct Summary {
  size_t good = 0;
  size_t off = 0;
  size_t not_checked = 0;
};
[[nodiscard]] Summary Count(std::span<const Judged> judged);

[[nodiscard]] std::string Text(const Facts& facts, std::span<const Judged> judged);
[[nodiscard]] nlohmann::ordered_json Json(const Facts& facts, std::span<const Judged> judged);

}  // namespace vramtrace::doctor
