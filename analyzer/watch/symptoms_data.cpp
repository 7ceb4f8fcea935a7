// Waiting for data: the loader, its workers, its disk, its copies.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyzer/report/units.h"
#include "analyzer/watch/symptoms.h"

namespace vramtrace::watch {
namespace {

// Below this the wait is lost in the spread of steps.
constexpr double kWaits = 0.15;
// Shared knowledge, claim 10: "the loader" needs 60 % of the idle time.
constexpr double kCovers = 0.6;
constexpr double kBlockedMedium = 0.3;
constexpr double kBlockedHigh = 0.5;

std::string NoLoader(const Evidence& evidence) {
  if (!evidence.traced) return "a recorded run: start it with `vramtrace watch -- CMD`";
  if (!evidence.loader.seen) {
    return "a torch DataLoader: this program's own way of loading leaves no mark, so waiting for data cannot "
           "be told "
           "from other work of the host";
  }
  return fmt::format("{} steps or more after the first {}", kLeastSteps, kWarmUpSteps);
}

double Blocked(const Evidence& evidence) {
  return evidence.host.workers > 0 ? evidence.host.workers_blocked : evidence.host.main_blocked;
}

// Workers that hide the wait: the loader must make a batch in the time that the rest of the step takes.
uint64_t WorkersNeeded(const Evidence& evidence) {
  const double rest = std::max(evidence.steps.mean - evidence.steps.data, 1e-3 * evidence.steps.mean);
  const double now = std::max(1, evidence.loader.workers);
  const double needed =
      evidence.loader.workers == 0 ? evidence.steps.data / rest : now * evidence.steps.mean / rest;
  return static_cast<uint64_t>(std::max(1.0, std::ceil(needed)));
}

}  // namespace

Finding WaitingForData(const Evidence& evidence) {
  const std::optional<double> share = evidence.DataShare();
  if (!share) return Unknown(NoLoader(evidence));
  const std::string seen =
      fmt::format("{} of a step ({} of {}) passes inside the DataLoader", Percent(*share),
                  Duration(evidence.steps.data), Duration(evidence.steps.mean));
  if (*share < kWaits) return Absent(seen);
  Finding finding;
  finding.state = State::kFound;
  finding.sentence = seen;
  const std::optional<double> idle = IdleSeconds(evidence);
  if (idle && *idle > 0) {
    const double covers = std::min(1.0, evidence.steps.data / *idle);
    finding.confidence = covers >= kCovers ? Confidence::kHigh : Confidence::kMedium;
    finding.sentence += fmt::format(", {} of the time in which the GPU is idle", Percent(covers));
  } else {
    finding.needs.push_back(NoUtilization(evidence));
  }
  finding.advice.emplace_back(
      "make batches ahead of time: num_workers, persistent_workers=True, prefetch_factor; the rows on "
      "workers and disk "
      "say which of them can help");
  finding.advice.emplace_back(
      "move what is the same every epoch (decoding, resizing, tokenising) out of the loop");
  return finding;
}

Finding FewWorkers(const Evidence& evidence) {
  const std::optional<double> share = evidence.DataShare();
  if (!share) return Unknown(NoLoader(evidence));
  if (*share < kWaits) return Absent("the workers keep up: the program hardly waits for data");
  if (evidence.host_looks < kLeastSamples) return Unknown("a few seconds of the workers' time in /proc");
  Finding finding;
  const int workers = evidence.loader.workers;
  const double spare = evidence.cores - std::max(workers, 1);
  const uint64_t needed = WorkersNeeded(evidence);
  const auto most = static_cast<uint64_t>(std::max(1.0, std::floor(evidence.cores)));
  const std::string target =
      needed <= most ? fmt::format("num_workers={} makes batches as fast as the step takes them", needed)
                     : fmt::format(
                           "{} workers would be needed and this program may use {:.0f} cores: "
                           "num_workers={}, and cheaper work a sample",
                           needed, evidence.cores, most);
  if (workers == 0) {
    finding.state = State::kFound;
    finding.confidence = Blocked(evidence) < kBlockedMedium ? Confidence::kHigh : Confidence::kMedium;
    finding.sentence = "num_workers is 0: the training process makes each batch itself, while the GPU waits";
    finding.advice.push_back(target);
    return finding;
  }
  const std::string busy =
      fmt::format("{} workers, each computing {} of the time", workers, Percent(evidence.host.workers_busy));
  if (evidence.host.workers_busy >= 0.8 && spare >= 1 && evidence.host.host_busy < 0.85) {
    finding.state = State::kFound;
    finding.confidence = Confidence::kHigh;
    finding.sentence = busy + fmt::format("; {:.0f} cores may be used", evidence.cores);
    finding.advice.push_back(target);
  } else if (evidence.host.workers_busy >= 0.5) {
    finding.state = State::kFound;
    finding.sentence = busy + fmt::format("; the machine's cores are {} busy, {:.0f} may be used",
                                          Percent(evidence.host.host_busy), evidence.cores);
    finding.advice.emplace_back(
        "more workers have no cores to run on: less work a sample, or a machine with more cores for each "
        "GPU");
  } else {
    return Absent(busy + ": they wait themselves, more of them would wait too");
  }
  return finding;
}

Finding SlowDisk(const Evidence& evidence) {
  const std::optional<double> share = evidence.DataShare();
  if (!share) return Unknown(NoLoader(evidence));
  if (*share < kWaits) return Absent("the program hardly waits for data");
  if (evidence.host_looks < kLeastSamples) return Unknown("a few seconds of process states in /proc");
  const double blocked = Blocked(evidence);
  const bool remote = !evidence.remote.systems.empty();
  const double busy = evidence.host.workers > 0 ? evidence.host.workers_busy : evidence.host.main_busy;
  const std::string seen =
      fmt::format("{} blocked by a device in {} of the looks, {} a second from storage",
                  evidence.host.workers > 0 ? "the workers are" : "the program is", Percent(blocked),
                  report::Size(static_cast<uint64_t>(evidence.host.read_bytes)));
  // A file system in user space (FUSE) sleeps instead of blocking: then only its name tells.
  if (blocked < kBlockedMedium && !(remote && busy < 0.5)) return Absent(seen);
  Finding finding;
  finding.state = State::kFound;
  finding.confidence = blocked >= kBlockedHigh ? Confidence::kHigh : Confidence::kMedium;
  finding.sentence = seen;
  if (remote) {
    std::string names;
    for (const std::string& name : evidence.remote.systems) names += (names.empty() ? "" : ", ") + name;
    finding.sentence += fmt::format("; files are open on {} ({})", names, evidence.remote.example);
    finding.advice.emplace_back("copy the data to a local disk or into memory (/dev/shm) before training");
  } else {
    finding.advice.emplace_back(
        "few large files instead of many small ones (tar shards, Arrow, LMDB), read in order; or a faster "
        "disk: "
        "`vramtrace doctor --data FOLDER` measures this one");
    finding.needs.emplace_back("a second epoch: what then fits the page cache comes from memory");
  }
  return finding;
}

Finding PageableCopies(const Evidence& evidence) {
  if (!evidence.loader.seen || evidence.steps.counted < kLeastSteps) return Unknown(NoLoader(evidence));
  if (evidence.loader.pinned) return Absent("the loader pins its batches");
  if (evidence.steps.input_bytes <= 0) return Unknown("the sizes of the model's inputs");
  // What staging through the driver's own pinned buffer reaches on a desktop host [ours; not measured here].
  constexpr double kPageableBytes = 3e9;
  const double cost = evidence.steps.input_bytes / kPageableBytes;
  const double share = cost / evidence.steps.mean;
  const std::string seen = fmt::format(
      "{} of inputs a step from memory that is not pinned: about {} at 3 GB/s, {} of the step",
      report::Size(static_cast<uint64_t>(evidence.steps.input_bytes)), Duration(cost), Percent(share));
  if (share < 0.05) return Absent(seen + ": not the reason");
  Finding finding;
  finding.state = State::kFound;
  finding.sentence = seen;
  finding.advice.emplace_back("DataLoader(pin_memory=True) and .to(device, non_blocking=True), both");
  finding.needs.emplace_back("the times of the copies, which traces do not hold");
  return finding;
}

}  // namespace vramtrace::watch
