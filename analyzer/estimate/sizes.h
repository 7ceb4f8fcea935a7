#pragma once
// "7b" instead of a config.json: the shape of a well-known model of that size.

#include <string>
#include <string_view>
#include <vector>

#include "analyzer/estimate/families.h"

namespace vramtrace::estimate {

// The text is a number of billions or millions of parameters: "7b", "0.5B", "350m".
[[nodiscard]] bool IsSize(std::string_view text);

// The model that stands for it; an error where no known model is within a third of it.
[[nodiscard]] trace::Result<Model> ModelOfSize(std::string_view text);

struct Size {
  double billions = 0;
  std::string_view model;
  std::string_view config;
};
[[nodiscard]] const std::vector<Size>& Sizes();

}  // namespace vramtrace::estimate
