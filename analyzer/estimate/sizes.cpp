#include "analyzer/estimate/sizes.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>

namespace vramtrace::estimate {
namespace {

std::optional<double> Billions(std::string_view text) {
  if (text.size() < 2) return std::nullopt;
  const char unit = text.back();
  const double scale = unit == 'b' || unit == 'B' ? 1 : unit == 'm' || unit == 'M' ? 1e-3 : 0;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size() - 1, value);
  const bool whole = error == std::errc() && end == text.data() + text.size() - 1;
  if (!whole || scale == 0 || !(value > 0 && value < 1e6)) return std::nullopt;
  return value * scale;
}

}  // namespace

const std::vector<Size>& Sizes() {
  static const std::vector<Size> sizes = {
#define VRAMTRACE_SIZE(billions, model, config) {billions, model, config},
#include "analyzer/estimate/sizes.def"
#undef VRAMTRACE_SIZE
  };
  return sizes;
}

bool IsSize(std::string_view text) { return Billions(text).has_value(); }

trace::Result<Model> ModelOfSize(std::string_view text) {
  constexpr double kFurthest = 1.34;  // times or part
  const double wanted = Billions(text).value_or(0);
  const Size* nearest = nullptr;
  const auto distance = [&](const Size& size) { return std::abs(std::log(size.billions / wanted)); };
  for (const Size& size : Sizes()) {
    if (nearest == nullptr || distance(size) < distance(*nearest)) nearest = &size;
  }
  if (!(wanted > 0) || distance(*nearest) > std::log(kFurthest)) {
    std::string names;
    for (const Size& size : Sizes())
      names += fmt::format("{}{:g}b", names.empty() ? "" : ", ", size.billions);
    return trace::Error{
        std::string(text), std::nullopt,
        fmt::format("no well-known model is near this size; there are {}, or give a config.json", names)};
  }
  trace::Result<Config> config = Config::Parse(nearest->config, std::string(text));
  if (!config.ok()) return config.error();
  trace::Result<Model> model = Recognise(std::move(config.value()));
  if (!model.ok()) return model.error();
  model.value().name = std::string(nearest->model);
  model.value().note = fmt::format(
      "{} is taken as {}; models of a name differ (7B: 6.7 to 7.6 billion), a config.json is exact", text,
      nearest->model);
  return model;
}

}  // namespace vramtrace::estimate
