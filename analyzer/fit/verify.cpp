#include "analyzer/fit/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyzer/fit/laboratory.h"
#include "analyzer/fit/placeholder.h"
#include "analyzer/report/units.h"

namespace vramtrace::fit {
namespace {

using report::Size;

constexpr std::string_view kExpandableSegments = "expandable-segments";
constexpr std::string_view kAccumulation = "gradient-accumulation";

// What the program is told: micro-batches where gradients are accumulated.
uint64_t BatchOf(const forecast::Prediction& prediction) {
  for (const forecast::Chosen& one : prediction.techniques) {
    if (one.technique->key == kAccumulation) return prediction.batch / std::max(1U, one.options.steps);
  }
  return prediction.batch;
}

std::variant<std::vector<std::string>, std::string> CommandFor(const VerifyRequest& request) {
  if (request.command.empty()) return std::string("no command to run again; give it after --");
  const uint64_t batch = BatchOf(*request.prediction);
  auto found = FindPlaceholder(request.command, "batch");
  if (std::holds_alternative<Placeholder>(found)) return Fill(request.command, "batch", batch);
  if (batch == 0 || batch == request.recorded_batch) return request.command;
  if (!request.command_was_recorded) return std::get<std::string>(found);
  auto guessed = WithPlaceholder(request.command, request.recorded_batch);
  if (auto* why = std::get_if<std::string>(&guessed)) return std::move(*why);
  return Fill(std::get<std::vector<std::string>>(guessed), "batch", batch);
}

std::string Line(std::string_view name, Bytes predicted, Bytes real) {
  const double share = real == 0 ? 0 : static_cast<double>(predicted) / static_cast<double>(real) - 1;
  return fmt::format("  {:<10} {:>12} {:>12} {:>+9.2f} %\n", name, Size(predicted), Size(real), 100 * share);
}

bool Holds(double low, double high, Bytes predicted, Bytes real) {
  const double share = predicted == 0 ? 0 : static_cast<double>(real) / static_cast<double>(predicted) - 1;
  return share >= low && share <= high;
}

// Techniques are applied from outside by the recorder's Python part; a setting of the allocator is a setting
// of the environment, under the name of before PyTorch 2.9 and of since then.
std::vector<std::pair<std::string, std::string>> EnvironmentFor(const forecast::Prediction& prediction) {
  std::vector<std::pair<std::string, std::string>> environment;
  const std::string apply = ApplyText(prediction.techniques);
  if (!apply.empty()) environment.emplace_back("VRAMTRACE_APPLY", apply);
  for (const forecast::Chosen& one : prediction.techniques) {
    if (one.technique->key != kExpandableSegments) continue;
    std::string settings = prediction.stream->facts.allocator_settings;
    settings += (settings.empty() ? "" : ",") + std::string("expandable_segments:True");
    for (const char* name : {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"}) {
      environment.emplace_back(name, settings);
    }
  }
  return environment;
}

std::string EndText(const RunResult& run) {
  std::string text;
  switch (run.end) {
    case End::kCompleted:
      return "";
    case End::kOutOfMemory:
      text = fmt::format("the run asked for {} more than a card of {} has", Size(run.largest_refused),
                         Size(kUnlimited));
      break;
    case End::kFailed:
      text = fmt::format("the program ended with status {}", run.exit_code);
      break;
    case End::kInterrupted:
      text = "interrupted";
      break;
    case End::kTimedOut:
    case End::kStopped:
    case End::kNotStarted:
      text = run.why;
      break;
  }
  text += "\n";
  for (const std::string& line : run.last_lines) text += "  | " + line + "\n";
  return text;
}

}  // namespace

std::string ApplyText(std::span<const forecast::Chosen> techniques) {
  std::string text;
  for (const forecast::Chosen& one : techniques) {
    if (one.technique->key == kExpandableSegments) continue;
    text += (text.empty() ? "" : ";") + forecast::TextOf(one);
  }
  return text;
}

std::variant<Verification, std::string> Verify(const VerifyRequest& request, Runner* runner) {
  auto command = CommandFor(request);
  if (auto* why = std::get_if<std::string>(&command)) return std::move(*why);
  const forecast::Prediction& prediction = *request.prediction;
  RunRequest run{.command = std::get<std::vector<std::string>>(command),
                 .gpu = request.gpu,
                 .total = kUnlimited,
                 .environment = EnvironmentFor(prediction)};

  Verification verification;
  verification.run = runner->Run(run);
  verification.predicted_allocated = prediction.outcome.allocated.bytes;
  verification.predicted_reserved = prediction.outcome.reserved.bytes;
  const RunResult& result = verification.run;
  if (!verification.ok()) {
    verification.words = "not verified: " + EndText(result);
    return verification;
  }
  if (result.peak_allocated == 0) {
    verification.words = "not verified: the run did not use PyTorch's caching allocator\n";
    return verification;
  }
  const forecast::Band& band = prediction.band;
  verification.allocated_in_band =
      Holds(band.allocated_low, band.allocated_high, verification.predicted_allocated, result.peak_allocated);
  verification.reserved_in_band =
      Holds(band.reserved_low, band.reserved_high, verification.predicted_reserved, result.peak_reserved);
  verification.words =
      fmt::format("  {:<10} {:>12} {:>12} {:>11}\n", "peak", "forecast", "dry run", "error") +
      Line("allocated", verification.predicted_allocated, result.peak_allocated) +
      Line("reserved", verification.predicted_reserved, result.peak_reserved);
  if (!verification.allocated_in_band || !verification.reserved_in_band) {
    verification.words += "  the dry run lies outside the forecast's band\n";
  }
  return verification;
}

}  // namespace vramtrace::fit
