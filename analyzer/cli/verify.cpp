#include "analyzer/cli/verify.h"

#include <fmt/format.h>

#include "analyzer/cli/dry_runner.h"
#include "analyzer/cli/launch/temporary_folder.h"
#include "analyzer/cli/subcommand.h"
#include "analyzer/fit/verify.h"
#include "preload/catalogue/catalogue.h"

namespace vramtrace::cli {
namespace {

int SayAndEnd(const std::string& sentence, int code) {
  fmt::print(stderr, "vramtrace forecast: {}\n", sentence);
  return code;
}

}  // namespace

int VerifyForecast(const forecast::Planner& planner, const forecast::Prediction& prediction,
                   const forecast::Card& card, const std::vector<std::string>& program) {
  const forecast::RunFacts& facts = planner.facts();
  const catalogue::Gpu* gpu = catalogue::FindGpu(card.id.empty() ? std::string_view(facts.gpu) : card.id);
  if (gpu == nullptr) return SayAndEnd(catalogue::UnknownGpuMessage(facts.gpu), kUsage);
  DryRunOptions options("10m");
  if (!options.Understand()) return kUsage;
  std::string why;
  const auto folder = launch::TemporaryFolder::Create(&why);
  if (folder == nullptr) {
    return SayAndEnd(fmt::format("cannot make a temporary folder: {}; set TMPDIR to a folder with room", why),
                     kBadInput);
  }
  DryRunner runner(options, folder->Path());
  fit::VerifyRequest request;
  request.command = program.empty() ? facts.command : program;
  request.command_was_recorded = program.empty();
  request.recorded_batch = facts.batch;
  request.gpu = gpu;
  request.prediction = &prediction;
  fmt::print("\nVerified by a dry run on {} without a limit\n", gpu->id);
  std::fflush(stdout);
  const std::variant<fit::Verification, std::string> verified = fit::Verify(request, &runner);
  if (const auto* refused = std::get_if<std::string>(&verified))
    return SayAndEnd("not verified: " + *refused, kCheckFailed);
  const auto& verification = std::get<fit::Verification>(verified);
  fmt::print("{}", verification.words);
  const bool held = verification.ok() && verification.allocated_in_band && verification.reserved_in_band;
  return held ? kDone : kCheckFailed;
}

}  // namespace vramtrace::cli
