#include "analyzer/watch/session.h"

#include <algorithm>

namespace vramtrace::watch {
namespace {

// Without a trace nobody says when training begins.
constexpr double kUntracedWarmUp = 10;

CardSample Ask(const nvml::Device& device, uint32_t index) {
  CardSample sample;
  sample.index = index;
  sample.name = device.Name().Or("");
  if (const auto memory = device.MemoryInfo()) {
    // What the driver keeps is nobody's to use.
    sample.total = memory.value->total - memory.value->reserved;
    sample.used = memory.value->used;
  }
  sample.utilization = device.UtilizationRates().value;
  sample.celsius = device.Celsius().value;
  sample.watts = device.Watts().value;
  sample.watts_limit = device.WattsLimit().value;
  sample.clock = device.SmClock().value;
  sample.clock_most = device.SmClockMost().value;
  sample.throttle = device.ThrottleReasons().value;
  return sample;
}

bool UsedBy(const nvml::Device& device, std::span<const pid_t> processes) {
  const auto users = device.ComputeProcesses();
  if (!users) return false;
  return std::any_of(users.value->begin(), users.value->end(), [&](const nvml::Process& user) {
    return std::find(processes.begin(), processes.end(), static_cast<pid_t>(user.pid)) != processes.end();
  });
}

}  // namespace

Session::Session(std::unique_ptr<nvml::Library> nvml, std::string why_no_nvml, Plan plan, Given given)
    : nvml_(std::move(nvml)), why_no_nvml_(std::move(why_no_nvml)), plan_(std::move(plan)), given_(given) {}

double Session::Elapsed() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }

void Session::Follow(const std::string& trace) {
  if (Following() || (tail_ != nullptr && tail_->path() == trace)) return;
  tail_ = std::make_unique<trace::TraceTail>(trace);
  facts_ = {};
}

void Session::ReadTrace() {
  if (tail_ == nullptr) return;
  const auto read = tail_->Poll([this](const trace::Event& event) { facts_.Add(event); });
  trace_problem_ = read.ok() ? "" : read.error().Sentence();
}

pid_t Session::Trainer(pid_t program, std::span<const pid_t> below) const {
  const auto traced = static_cast<pid_t>(facts_.pid());
  return std::find(below.begin(), below.end(), traced) != below.end() ? traced : program;
}

void Session::Look(pid_t program, std::span<const pid_t> below) {
  machine_.Look(Trainer(program, below), below);
}

// The trace knows which cards are the program's, by their UUID; a simulated card's memory is known to the
// program's process alone, so there the trace's figure counts. Without a trace: the cards that the processes
// have open, else all.
std::vector<CardSample> Session::SampleCards(std::span<const pid_t> processes) const {
  std::vector<CardSample> samples;
  std::vector<CardSample> users;
  std::vector<CardSample> all;
  if (nvml_ != nullptr) {
    for (uint32_t index = 0; index < nvml_->devices().size(); ++index) {
      const nvml::Device& device = nvml_->devices()[index];
      const std::string uuid = device.Uuid().Or("");
      const auto known = std::find_if(facts_.cards().begin(), facts_.cards().end(), [&](const auto& card) {
        return !card.second.uuid.empty() && card.second.uuid == uuid && card.second.used > 0;
      });
      CardSample sample = Ask(device, index);
      if (known != facts_.cards().end()) {
        if (nvml::IsSimulated(device)) {
          sample.used = known->second.used;
          sample.total = known->second.total;
        }
        samples.push_back(std::move(sample));
      } else {
        if (UsedBy(device, processes)) users.push_back(sample);
        all.push_back(std::move(sample));
      }
    }
  }
  if (!samples.empty()) return samples;
  if (!users.empty()) return users;
  if (no_trace_) return all;
  for (const auto& [index, card] : facts_.cards()) {
    if (card.used == 0) continue;
    CardSample sample;
    sample.index = index;
    sample.total = card.total;
    sample.used = card.used;
    samples.push_back(sample);
  }
  return samples;
}

Moment Session::Sample(pid_t program, std::span<const pid_t> below) {
  ReadTrace();
  const pid_t trainer = Trainer(program, below);
  machine_.LookAtFiles(trainer, below);
  std::vector<pid_t> all(below.begin(), below.end());
  all.push_back(program);

  Moment moment;
  moment.elapsed = Elapsed();
  moment.cards = SampleCards(all);
  moment.facts = &facts_;
  moment.progress = Estimate(facts_, plan_, moment.elapsed);
  moment.why_no_nvml = why_no_nvml_;

  const bool steady =
      tail_ != nullptr ? facts_.steps().size() >= kWarmUpSteps : moment.elapsed >= kUntracedWarmUp;
  for (const CardSample& card : moment.cards) observer_.AddCard(card, steady);
  const auto now = Clock::now();
  const auto rates = machine_.Take(std::chrono::duration<double>(now - sampled_).count());
  sampled_ = now;
  if (rates && steady) observer_.AddHost(*rates);
  return moment;
}

Ended Session::Finish() {
  ReadTrace();
  // The highest use lies between two samples more often than not; the trace has it.
  for (const auto& [index, card] : facts_.cards()) {
    if (card.used_most == 0) continue;
    CardSample sample;
    sample.index = index;
    sample.total = card.total;
    sample.used = card.used_most;
    if (nvml_ != nullptr) {
      for (uint32_t physical = 0; physical < nvml_->devices().size(); ++physical) {
        if (nvml_->devices()[physical].Uuid().Or("") == card.uuid) sample.index = physical;
      }
    }
    observer_.AddCard(sample, false);
  }
  Ended ended;
  ended.elapsed = Elapsed();
  ended.evidence = observer_.Finish(facts_, machine_.remote_files());
  ended.evidence.why_no_nvml = why_no_nvml_;
  ended.evidence.given = given_;
  ended.decided = DecideAll(ended.evidence);
  ended.rules = RulesOfThumb(ended.evidence);
  ended.progress = Estimate(facts_, plan_, ended.elapsed);
  return ended;
}

}  // namespace vramtrace::watch
