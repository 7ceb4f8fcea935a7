#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analyzer/cli/color.h"
#include "analyzer/cli/gpus_cost_options.h"
#include "analyzer/cli/launch/units.h"
#include "analyzer/cli/program.h"
#include "analyzer/cli/subcommand.h"
#include "analyzer/cli/trace_argument.h"
#include "analyzer/cli/verify.h"
#include "analyzer/forecast/build_stream.h"
#include "analyzer/gpus/cost_text.h"
#include "analyzer/report/forecast.h"
#include "analyzer/report/json.h"

namespace vramtrace::cli {
namespace {

int Usage(const std::string& sentence) {
  fmt::print(stderr, "vramtrace forecast: {}\n", sentence);
  return kUsage;
}

int BadInput(const trace::Error& error) {
  fmt::print(stderr, "vramtrace: {}\n", error.Sentence());
  return kBadInput;
}

class ForecastCommand final : public Subcommand {
 public:
  [[nodiscard]] std::string_view Name() const override { return "forecast"; }
  [[nodiscard]] std::string_view Summary() const override {
    return "Say which batch, technique or GPU makes a recorded run fit";
  }
  [[nodiscard]] std::string_view Example() const override {
    return "vramtrace forecast train.vtrace --gpu rtx4090 --batch 16 --with checkpointing";
  }

  void AddOptions(CLI::App& app) override {
    app.add_option(
           "trace", traces_,
           "A trace; two of one program with different batches give exact laws; the newest *.vtrace here "
           "when none is given")
        ->expected(0, 2);
    auto* gpu =
        app.add_option("--gpu", gpu_, "The card to forecast for; the recorded one when none is given");
    app.add_option("--capacity", capacity_, "Its memory instead: 24GiB")->excludes(gpu);
    app.add_option("--batch", batch_, "The batch to forecast; the recorded one when none is given")
        ->check(CLI::PositiveNumber);
    app.add_option("--recorded-batch", recorded_batches_,
                   "The batch of each trace, where its inputs do not tell")
        ->check(CLI::PositiveNumber)
        ->delimiter(',')
        ->expected(1, 2);
    app.add_option("--with", techniques_,
                   "A technique to apply: checkpointing, lora:rank=8, ...; may be repeated")
        ->allow_extra_args(false);
    app.add_option("--device", device_, "Of which device, where the run used several");
    app.add_option("--format", format_, "text or json")
        ->check(CLI::IsMember({"text", "json"}))
        ->capture_default_str();
    app.add_option("--top", top_, "Candidates to list")->check(CLI::PositiveNumber)->capture_default_str();
    app.add_flag("--all-cards", all_cards_, "List the cards that are too small, too");
    app.add_flag("--strict", strict_, "Exit with 1 unless it fits");
    app.add_flag(
        "--verify", verify_,
        "Run the program again on the simulated card with the change, and compare; the recorded command, "
        "or the one after --, with {batch} in the place of the batch");
    cost_.AddOptions(app);
    AddProgramToUsage(app, true);
  }

  [[nodiscard]] bool TakesProgram() const override { return true; }
  void SetProgram(const std::vector<std::string>& words) override { program_ = words; }

  [[nodiscard]] int Run() override {
    if (!program_.empty() && !verify_)
      return Usage("a command after -- is for --verify; the trace comes before it");
    report::ForecastQuestion question;
    question.batch = batch_;
    question.cards = format_ == "json" || !cost_.Used();  // the table of costs has them too
    for (const std::string& text : techniques_) {
      std::variant<forecast::Chosen, std::string> chosen = forecast::ParseTechnique(text);
      if (const auto* wrong = std::get_if<std::string>(&chosen)) return Usage(*wrong);
      question.techniques.push_back(std::get<forecast::Chosen>(chosen));
    }
    const trace::Result<std::shared_ptr<forecast::Planner>> planner = MakePlanner();
    if (!planner.ok()) return BadInput(planner.error());
    if (const std::string wrong = ChooseCard(planner.value()->facts(), &question); !wrong.empty()) {
      return Usage(wrong);
    }
    if (batch_ != 0 && planner.value()->facts().batch == 0) {
      return Usage(
          "the recorded batch is not known (no input of the root module says it); give it with "
          "--recorded-batch.");
    }
    const report::v1::Forecast made = report::MakeForecast(*planner.value(), chosen_traces_, question);
    const int code = Print(made, *planner.value());
    if (!verify_ || !made.has_prediction()) return code;
    const forecast::Card card =
        question.card ? *question.card : forecast::RecordedCard(planner.value()->facts());
    const uint64_t batch = batch_ != 0 ? batch_ : planner.value()->facts().batch;
    const int verified = VerifyForecast(*planner.value(),
                                        planner.value()->Predict(batch, question.techniques), card, program_);
    return verified != kDone ? verified : code;
  }

 private:
  [[nodiscard]] trace::Result<std::shared_ptr<forecast::Planner>> MakePlanner() {
    if (traces_.empty()) traces_.emplace_back();
    std::vector<forecast::Stream> streams;
    for (size_t i = 0; i < traces_.size(); ++i) {
      const trace::Result<std::string> path = ChooseTrace(traces_[i]);
      if (!path.ok()) return path.error();
      chosen_traces_.push_back(path.value());
      forecast::StreamOptions options;
      if (device_ >= 0) options.device = static_cast<uint32_t>(device_);
      if (i < recorded_batches_.size()) options.batch = recorded_batches_[i];
      trace::Result<forecast::Stream> stream = forecast::BuildStream(path.value(), options);
      if (!stream.ok()) return stream.error();
      streams.push_back(std::move(stream.value()));
    }
    return forecast::Planner::Make(std::move(streams));
  }

  // A sentence where the card is not known.
  [[nodiscard]] std::string ChooseCard(const forecast::RunFacts& facts,
                                       report::ForecastQuestion* question) const {
    if (!capacity_.empty()) {
      const std::optional<uint64_t> bytes = launch::ParseSize(capacity_);
      if (!bytes) return fmt::format("--capacity {}: expected a size, such as 24GiB", capacity_);
      question->card = forecast::CapacityCard(*bytes, facts);
    } else if (!gpu_.empty()) {
      const catalogue::Gpu* gpu = catalogue::FindGpu(gpu_);
      if (gpu == nullptr) return catalogue::UnknownGpuMessage(gpu_);
      question->card = forecast::CatalogueCard(*gpu, facts);
      if (question->card->total == 0) {
        return fmt::format("the memory of {} is not known to the catalogue; give it with --capacity.",
                           gpu->id);
      }
    }
    return {};
  }

  [[nodiscard]] int Print(const report::v1::Forecast& made, const forecast::Planner& planner) const {
    std::optional<gpus::CardTable> costs;
    if (cost_.Used() && made.has_prediction()) {
      const trace::Result<gpus::CostOptions> options = cost_.Options();
      if (!options.ok()) return SayCostError(options.error());
      trace::Result<gpus::PriceTable> prices = cost_.Prices();
      if (!prices.ok()) return SayCostError(prices.error());
      costs = gpus::RankCards(std::vector<gpus::Need>{NeedOf(made, planner)}, options.value(),
                              std::move(prices.value()));
    }
    if (format_ == "json") {
      nlohmann::ordered_json json = report::ToJson(made);
      if (costs) json["costs"] = gpus::CardsJson(*costs);
      fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    } else {
      fmt::print("{}", report::ForecastText(made, {ColorWanted(), top_, all_cards_}));
      if (costs) fmt::print("\n{}", gpus::CardsText(*costs));
    }
    if (!made.has_prediction()) return kBadInput;
    return strict_ && made.prediction().verdict() != "fits" ? kCheckFailed : kDone;
  }

  // What a card must hold besides its own context.
  [[nodiscard]] static gpus::Need NeedOf(const report::v1::Forecast& made, const forecast::Planner& planner) {
    const report::v1::Prediction& asked = made.prediction();
    const forecast::RunFacts& facts = planner.facts();
    const uint64_t libraries = facts.elsewhere - std::min(facts.elsewhere, facts.context);
    const uint64_t context = made.card().elsewhere() - std::min(made.card().elsewhere(), libraries);
    gpus::Need need;
    need.used = {asked.used_low() - std::min(asked.used_low(), context), asked.used() - context,
                 asked.used_high() - std::min(asked.used_high(), context)};
    return need;
  }

  std::vector<std::string> traces_;
  std::vector<std::string> chosen_traces_;
  std::string gpu_;
  std::string capacity_;
  uint64_t batch_ = 0;
  std::vector<uint64_t> recorded_batches_;
  std::vector<std::string> techniques_;
  int device_ = -1;
  std::string format_ = "text";
  size_t top_ = 5;
  bool all_cards_ = false;
  bool strict_ = false;
  bool verify_ = false;
  std::vector<std::string> program_;
  CostFlags cost_;
};

}  // namespace

std::unique_ptr<Subcommand> MakeForecastCommand() { return std::make_unique<ForecastCommand>(); }

}  // namespace vramtrace::cli
