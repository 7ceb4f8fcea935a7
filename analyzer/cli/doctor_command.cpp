#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <nlohmann/json.hpp>

#include "analyzer/cli/launch/enter_simulator.h"
#include "analyzer/cli/program.h"
#include "analyzer/cli/subcommand.h"
#include "analyzer/doctor/collect.h"
#include "analyzer/doctor/text.h"
#include "preload/catalogue/catalogue.h"

namespace vramtrace::cli {
namespace {

class DoctorCommand final : public Subcommand {
 public:
  [[nodiscard]] std::string_view Name() const override { return "doctor"; }
  [[nodiscard]] std::string_view Summary() const override {
    return "Check the card and the machine: is it what it is sold as";
  }
  [[nodiscard]] std::string_view Example() const override {
    return "vramtrace doctor --sold-as rtx4090 --data /data/images";
  }

  void AddOptions(CLI::App& app) override {
    app.add_option("--sold-as", sold_as_, "The card that was promised, by id or name: see `vramtrace gpus`");
    app.add_option("--data", options_.data, "A folder of the data set: how fast it is read");
    app.add_option("--seconds", options_.seconds, "How long it may measure")
        ->check(CLI::Range(1.0, 3600.0))
        ->capture_default_str();
    app.add_option("--python", options_.python, "The interpreter whose PyTorch measures")
        ->capture_default_str();
    app.add_option("--probe", probe_,
                   "Measure through torch, or native: CUDA's runtime and cuBLAS; none measures nothing")
        ->check(CLI::IsMember({"auto", "torch", "native", "none"}))
        ->capture_default_str();
    app.add_flag("--strict", strict_, "Exit with 1 when something is off or could not be checked");
    app.add_flag("-q,--quiet", quiet_, "Do not show progress");
    app.add_option("--format", format_, "text or json")
        ->check(CLI::IsMember({"text", "json"}))
        ->capture_default_str();
    app.add_option("--gpu", gpu_, "Check a simulated card, by id or name");
    app.add_option("--count", count_, "With --gpu: how many of them")->check(CLI::Range(1, 16));
    app.add_option("--scenario", scenario_, "With --gpu: a file of what the card says of itself");
  }

  [[nodiscard]] int Run() override {
    for (const std::string& name : {gpu_, sold_as_}) {
      if (name.empty() || catalogue::FindGpu(name) != nullptr) continue;
      Say(catalogue::UnknownGpuMessage(name));
      return kUsage;
    }
    if (!gpu_.empty() && !launch::OnSimulator()) {
      Say(launch::EnterSimulator({std::string(catalogue::FindGpu(gpu_)->id), count_, scenario_}));
      return kBadInput;
    }
    options_.sold_as = sold_as_;
    options_.simulated = launch::OnSimulator();
    options_.has_clock = launch::SimulatorHasClock();
    options_.probe = probe_ == "torch"    ? doctor::ProbeChoice::kTorch
                     : probe_ == "native" ? doctor::ProbeChoice::kNative
                     : probe_ == "none"   ? doctor::ProbeChoice::kNone
                                          : doctor::ProbeChoice::kAuto;
    const auto began = std::chrono::steady_clock::now();
    options_.progress = [this, began](const std::string& what) {
      if (quiet_) return;
      const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
      Say(fmt::format("{:.0f} of {:.0f} s: {}", elapsed, options_.seconds, what));
    };
    const doctor::Facts facts = doctor::Collect(options_);
    const std::vector<doctor::Judged> judged = doctor::JudgeAll(facts);
    if (format_ == "json") {
      fmt::print("{}\n",
                 doctor::Json(facts, judged).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    } else {
      fmt::print("{}", doctor::Text(facts, judged));
    }
    const doctor::Summary summary = doctor::Count(judged);
    return strict_ && summary.off + summary.not_checked > 0 ? static_cast<int>(kCheckFailed)
                                                            : static_cast<int>(kDone);
  }

 private:
  doctor::CollectOptions options_;
  std::string sold_as_;
  std::string probe_ = "auto";
  bool strict_ = false;
  bool quiet_ = false;
  std::string format_ = "text";
  std::string gpu_;
  int count_ = 1;
  std::string scenario_;
};

}  // namespace

std::unique_ptr<Subcommand> MakeDoctorCommand() { return std::make_unique<DoctorCommand>(); }

}  // namespace vramtrace::cli
