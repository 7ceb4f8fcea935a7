#include "analyzer/cli/view_forecast.h"

#include <variant>

#include "analyzer/forecast/build_stream.h"
#include "analyzer/report/forecast.h"

namespace vramtrace::cli {
namespace {

// Each takes about as long as the first forecast.
constexpr size_t kTechniques = 3;

// The device that died, else the one with the highest peak.
const report::v1::DeviceReport* MainDevice(const report::v1::Report& report) {
  const report::v1::DeviceReport* chosen = nullptr;
  for (const report::v1::DeviceReport& device : report.devices()) {
    if (device.block_allocations() == 0) continue;
    if (device.has_out_of_memory()) return &device;
    if (chosen == nullptr || device.peak_allocated().bytes() > chosen->peak_allocated().bytes())
      chosen = &device;
  }
  return chosen;
}

std::vector<forecast::Chosen> ChosenOf(const report::v1::Prediction& prediction) {
  std::vector<forecast::Chosen> all;
  for (const std::string& text : prediction.techniques()) {
    auto chosen = forecast::ParseTechnique(text);
    if (std::holds_alternative<forecast::Chosen>(chosen)) all.push_back(std::get<forecast::Chosen>(chosen));
  }
  return all;
}

}  // namespace

std::vector<report::v1::Forecast> ForecastsFor(const report::BuiltReport& built) {
  const report::v1::Report& report = built.report;
  const report::v1::DeviceReport* device = MainDevice(report);
  if (device == nullptr || report.steps().completed() < 2) return {};
  forecast::StreamOptions options;
  options.device = device->device();
  const std::string& trace = built.file->path();
  trace::Result<forecast::Stream> stream =
      forecast::BuildStream(built.file, built.tables, built.stacks, *built.scan, options);
  if (!stream.ok()) return {};
  const auto planner = forecast::Planner::Make({std::move(stream.value())});
  if (!planner.ok()) return {};
  std::vector<report::v1::Forecast> forecasts;
  forecasts.push_back(report::MakeForecast(*planner.value(), {trace}, {}));
  const report::v1::Forecast& plain = forecasts.front();
  if (!plain.whole() || !plain.has_prediction()) return {};
  std::vector<std::vector<forecast::Chosen>> asked;
  for (const auto* candidates : {&plain.fitting(), &plain.falling_short()}) {
    for (const report::v1::Candidate& candidate : *candidates) {
      if (asked.size() < kTechniques) asked.push_back(ChosenOf(candidate.prediction()));
    }
  }
  for (std::vector<forecast::Chosen>& techniques : asked) {
    forecasts.push_back(report::MakeForecast(
        *planner.value(), {trace}, {.card = {}, .batch = 0, .techniques = techniques, .cards = true}));
  }
  return forecasts;
}

}  // namespace vramtrace::cli
