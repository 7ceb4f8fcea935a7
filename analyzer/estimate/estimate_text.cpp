#include "analyzer/estimate/estimate_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analyzer/report/table.h"
#include "analyzer/report/units.h"

namespace vramtrace::estimate {
namespace {

using report::Grouped;
using report::Size;
using Align = report::Table::Align;

constexpr Class kClasses[] = {Class::kWeight,     Class::kGradient, Class::kOptimizer,
                              Class::kActivation, Class::kLogits,   Class::kTemporary,
                              Class::kCast,       Class::kCache,    Class::kUnsharded};

std::string DtypeText(const Request& request) {
  switch (request.precision) {
    case Precision::kAutocast:
      return "FP32 weights under BF16 autocast";
    case Precision::kMaster:
      return "BF16 with an FP32 copy of the weights";
    case Precision::kPure:
      break;
  }
  return request.weights == Dtype::kFp32 ? "FP32" : "BF16";
}

std::string MethodText(const Request& request) {
  switch (request.method) {
    case Method::kInference:
      return "inference";
    case Method::kFull:
      return "full fine-tuning";
    case Method::kLora:
      return fmt::format("LoRA, rank {}", request.rank);
    case Method::kQlora:
      break;
  }
  return fmt::format("QLoRA (NF4), rank {}", request.rank);
}

std::string RequestText(const Request& request) {
  std::string text = fmt::format("{}: batch {} x {} tokens, {}", MethodText(request), request.batch,
                                 request.sequence, DtypeText(request));
  const auto add = [&](bool on, const std::string& what) {
    if (on) text += ", " + what;
  };
  add(request.new_tokens > 0, fmt::format("{} new tokens", request.new_tokens));
  add(request.Trains(), request.optimizer);
  add(request.attention == AttentionKind::kEager, "eager attention");
  add(request.checkpointing, "checkpointing");
  add(request.accumulation > 1, fmt::format("{} micro-batches", request.accumulation));
  add(request.step_in_backward, "optimizer in the backward");
  add(request.chunked_loss, "chunked loss");
  add(request.fused_loss, "fused loss");
  add(request.optimizer_on_host, "optimizer on the host");
  add(request.parameters_on_host, "parameters on the host");
  add(request.checkpoints_on_host, "checkpoints on the host");
  add(request.Cards() > 1, fmt::format("{} cards", request.Cards()));
  return text;
}

std::string HeadText(const Estimate& estimate) {
  std::string text =
      fmt::format("{}{}: {} parameters", estimate.model,
                  estimate.family.empty() ? "" : " (" + estimate.family + ")", Grouped(estimate.parameters));
  if (estimate.adapters > 0) text += fmt::format(" and {} of adapters", Grouped(estimate.adapters));
  return report::Wrap(text, 110, 2) + "\n" + report::Wrap(RequestText(estimate.request), 110, 2) + "\n";
}

std::string ClassesText(const Estimate& estimate) {
  const Memory& peak = estimate.AtPeak();
  report::Table table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kLeft});
  const auto total = static_cast<double>(peak.Total());
  for (const Class kind : kClasses) {
    if (peak[kind] == 0) continue;
    table.Add({ClassName(kind), Size(peak[kind]), Grouped(peak[kind]) + " B",
               report::Share(static_cast<double>(peak[kind]), total), BasisOf(kind)});
  }
  table.Add({"= allocated", Size(peak.Total()), Grouped(peak.Total()) + " B", "",
             fmt::format("band {} to {}", Size(estimate.allocated.low), Size(estimate.allocated.high))});
  table.Add({"= device used", Size(estimate.used.expected), "", "",
             fmt::format("band {} to {}; the context comes on top", Size(estimate.used.low),
                         Size(estimate.used.high))});
  return table.Render(130);
}

std::string PhasesText(const Estimate& estimate) {
  std::string text = "Peak of each phase:";
  for (size_t at = 0; at < estimate.phases.size(); ++at) {
    text += fmt::format("{} {} {}", at == 0 ? "" : ",", estimate.phases[at].name,
                        Size(estimate.phases[at].memory.Total()));
  }
  return text + "\n";
}

double PerParameter(const Estimate& estimate, Class kind) {
  uint64_t most = 0;
  for (const Phase& phase : estimate.phases) most = std::max(most, phase.memory[kind]);
  return static_cast<double>(most) / static_cast<double>(std::max<uint64_t>(estimate.parameters, 1));
}

std::string PerParameterText(const Estimate& estimate) {
  const double weights = PerParameter(estimate, Class::kWeight);
  if (!estimate.request.Trains()) return fmt::format("Bytes a parameter: weights {:.2f}\n", weights);
  const double gradients = PerParameter(estimate, Class::kGradient);
  const double optimizer = PerParameter(estimate, Class::kOptimizer);
  return fmt::format("Bytes a parameter: {:.2f} (weights {:.2f}, gradients {:.2f}, optimizer {:.2f})\n",
                     weights + gradients + optimizer, weights, gradients, optimizer);
}

std::string ChangesText(const Estimate& estimate, const std::vector<Change>& changes) {
  if (changes.empty()) return "";
  constexpr size_t kMost = 8;
  report::Table table({Align::kLeft, Align::kRight, Align::kRight, Align::kLeft});
  for (size_t at = 0; at < std::min(kMost, changes.size()); ++at) {
    const Estimate& after = changes[at].after;
    const auto saved = static_cast<int64_t>(estimate.used.expected - after.used.expected);
    table.Add({std::string(changes[at].technique->name), Size(after.used.expected),
               report::SignedSize(-saved),
               fmt::format("{}; peak in {}", changes[at].technique->option, after.phases[after.peak].name)});
  }
  return "One change, and device used after it (savings do not add up: the maximum moves to another "
         "phase)\n" +
         table.Render(120);
}

std::string HostText(const Estimate& estimate) {
  if (estimate.host_bytes == 0) return "";
  return fmt::format("On the host: {} a card.\n", Size(estimate.host_bytes));
}

nlohmann::ordered_json Json(const gpus::Bytes& bytes) {
  return {{"low", bytes.low}, {"expected", bytes.expected}, {"high", bytes.high}};
}

nlohmann::ordered_json Json(const Memory& memory) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const Class kind : kClasses) {
    if (memory[kind] > 0) json[ClassName(kind)] = memory[kind];
  }
  return json;
}

}  // namespace

const char* BasisOf(Class kind) {
  switch (kind) {
    case Class::kWeight:
    case Class::kGradient:
    case Class::kOptimizer:
    case Class::kCache:
      return "exact, from shapes";
    case Class::kUnsharded:
      return "formula";
    default:
      return "computed, operation by operation";
  }
}

std::string EstimateText(const Estimate& estimate, const std::vector<Change>& changes) {
  std::string text = HeadText(estimate);
  text +=
      fmt::format("\nMemory of one card at its peak, in the phase {}\n", estimate.phases[estimate.peak].name);
  text += ClassesText(estimate) + PhasesText(estimate) + PerParameterText(estimate) + HostText(estimate);
  for (const std::string& note : estimate.notes) text += report::Wrap("Note: " + note + ".", 118, 6) + "\n";
  const std::string change = ChangesText(estimate, changes);
  if (!change.empty()) text += "\n" + change;
  return text;
}

nlohmann::ordered_json EstimateJson(const Estimate& estimate, const std::vector<Change>& changes) {
  nlohmann::ordered_json json;
  json["model"] = estimate.model;
  json["family"] =
      estimate.family.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(estimate.family);
  json["request"] = RequestText(estimate.request);
  json["parameters"] = estimate.parameters;
  json["adapter_parameters"] = estimate.adapters;
  json["trainable_parameters"] = estimate.trainable;
  json["cards"] = estimate.request.Cards();
  json["peak_phase"] = estimate.phases[estimate.peak].name;
  json["classes"] = nlohmann::ordered_json::array();
  for (const Class kind : kClasses) {
    if (estimate.AtPeak()[kind] == 0) continue;
    json["classes"].push_back(
        {{"class", ClassName(kind)}, {"bytes", estimate.AtPeak()[kind]}, {"basis", BasisOf(kind)}});
  }
  json["allocated_bytes"] = Json(estimate.allocated);
  json["device_used_without_context_bytes"] = Json(estimate.used);
  json["host_bytes"] = estimate.host_bytes;
  json["step_flops"] = estimate.step_flops;
  json["phases"] = nlohmann::ordered_json::array();
  for (const Phase& phase : estimate.phases) {
    json["phases"].push_back(
        {{"phase", phase.name}, {"bytes", phase.memory.Total()}, {"classes", Json(phase.memory)}});
  }
  json["notes"] = estimate.notes;
  json["changes"] = nlohmann::ordered_json::array();
  for (const Change& change : changes) {
    json["changes"].push_back({{"technique", change.technique->name},
                               {"option", change.technique->option},
                               {"device_used_without_context_bytes", Json(change.after.used)},
                               {"peak_phase", change.after.phases[change.after.peak].name}});
  }
  return json;
}

}  // namespace vramtrace::estimate
