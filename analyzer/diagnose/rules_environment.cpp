// D25, D20, D19, D18, D17: the card, who else is on it, and what is not PyTorch's.
#include <fmt/format.h>

#include <algorithm>

#include "analyzer/diagnose/finding.h"
#include "preload/catalogue/catalogue.h"

namespace vramtrace::diagnose {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

const catalogue::Gpu* CardOf(const Evidence& evidence) {
  const auto known = evidence.source.tables->devices.find(evidence.device);
  return known == evidence.source.tables->devices.end() ? nullptr : catalogue::FindGpu(known->second.name());
}

// What the context of this card costs by the catalogue; 0: not known.
uint64_t ContextBytes(const Evidence& evidence) {
  const catalogue::Gpu* card = CardOf(evidence);
  return card == nullptr ? 0 : catalogue::ContextOf(*card).bytes;
}

}  // namespace

Finding HostMemory(const Evidence& evidence) {
  Finding finding;
  const timeline::HostMemory& host = evidence.source.scan->host;
  if (host.refused == 0) return finding;
  const uint64_t free_bytes = evidence.total > evidence.used ? evidence.total - evidence.used : 0;
  finding.state = State::kFound;
  finding.confidence = evidence.refused ? Confidence::kMedium : Confidence::kHigh;
  finding.numbers = {
      {"host", fmt::format("{} refused call(s) for pinned or registered host memory; {} was pinned at most",
                           host.refused, Size(host.peak))},
      {"device", fmt::format("{} free then or later", Size(free_bytes))}};
  finding.sentence =
      fmt::format("VRAM is fine: the call that failed pins host memory. {} of the card was free at its peak.",
                  Size(free_bytes));
  finding.remedies.push_back(
      {"pin_memory=False, or smaller pinned buffers: PyTorch rounds each up to a power of two", 0,
       Forecast::kNone});
  finding.remedies.push_back(
      {"more memory for the container, and a higher limit of locked memory (ulimit -l)", 0, Forecast::kNone});
  return finding;
}

Finding SmallerCard(const Evidence& evidence) {
  Finding finding;
  const catalogue::Gpu* card = CardOf(evidence);
  uint64_t nominal = 0;  // 0: not known
  if (card != nullptr) nominal = catalogue::TotalsOf(*card).value_or(catalogue::MemoryTotals{}).cuda_bytes;
  const auto known = evidence.source.tables->devices.find(evidence.device);
  const std::string name =
      known == evidence.source.tables->devices.end() ? std::string() : known->second.name();
  const bool mig = name.find("MIG") != std::string::npos || (known != evidence.source.tables->devices.end() &&
                                                             known->second.uuid().starts_with("MIG"));
  std::string limiter;
  for (const std::string_view variable :
       {"CUDA_DEVICE_MEMORY_LIMIT", "CUDA_DEVICE_MEMORY_LIMIT_0", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"}) {
    if (!evidence.Environment(variable).empty())
      limiter = fmt::format("{}={}", variable, evidence.Environment(variable));
  }
  const std::string_view visible = evidence.Environment("CUDA_VISIBLE_DEVICES");
  if (visible.starts_with("MIG-")) limiter = fmt::format("CUDA_VISIBLE_DEVICES={}", visible);
  constexpr double kSmaller = 0.92;
  const bool smaller =
      nominal > 0 && static_cast<double>(evidence.total) < kSmaller * static_cast<double>(nominal);
  const bool refused = evidence.refusal && evidence.refusal->reason == attribution::Reason::kLimit &&
                       evidence.refusal->device_free >= evidence.refusal->from_driver + 64 * kMiB;
  if (!smaller && !refused) return finding;
  finding.state = State::kFound;
  finding.confidence = mig || !limiter.empty() ? Confidence::kHigh : Confidence::kMedium;
  if (finding.confidence != Confidence::kHigh)
    finding.missing.emplace_back("no limiter, MIG identity or limit variable was seen");
  if (smaller) {
    finding.numbers.emplace_back("total", fmt::format("{} visible, {} by the catalogue for {}",
                                                      Size(evidence.total), Size(nominal), name));
    finding.sentence = fmt::format("The card has {}, {} less than a {}: a slice or a limit{}.",
                                   Size(evidence.total), Size(nominal - evidence.total), name,
                                   limiter.empty() ? std::string() : ", set by " + limiter);
  }
  if (refused) {
    finding.numbers.emplace_back(
        "refusal", fmt::format("{} was refused with {} free", Size(evidence.refusal->from_driver),
                               Size(evidence.refusal->device_free)));
    const std::string words =
        fmt::format("A request of {} was refused although {} was free: a limit of the process{}.",
                    Size(evidence.refusal->from_driver), Size(evidence.refusal->device_free),
                    limiter.empty() ? std::string() : ", " + limiter);
    finding.sentence += (finding.sentence.empty() ? "" : " ") + words;
  }
  finding.remedies.push_back(
      {"ask for the whole card or a larger slice; plan with the visible total (vramtrace forecast "
       "--capacity)",
       0, Forecast::kNone});
  return finding;
}

Finding OtherTenants(const Evidence& evidence) {
  Finding finding;
  const uint64_t charge = ContextBytes(evidence);
  const uint64_t context = evidence.scan->context_bytes;
  if (charge == 0 || context == 0) {
    finding.missing.emplace_back(
        "the device's answer when the context was new, or the card in the catalogue");
    return finding;
  }
  // Contexts of one card differ by about 150 MiB between drivers.
  const uint64_t others = context > charge ? context - charge : 0;
  finding.numbers = {
      {"at the start", fmt::format("{} used when the context was new; a context of this card takes about {}",
                                   Size(context), Size(charge))}};
  if (others < 256 * kMiB) return finding;
  constexpr uint64_t kClear = 768 * kMiB;  // beyond any context that was measured
  finding.state = State::kFound;
  finding.confidence = Confidence::kMedium;
  finding.missing.emplace_back("the list of processes on the card (NVML), which traces do not hold");
  finding.parts = {{"context", std::min(others, evidence.Term("context"))}};
  finding.sentence = fmt::format("{} of the card {} held by others before this process allocated anything.",
                                 Size(others), others >= kClear ? "was" : "may have been");
  finding.remedies.push_back(
      {"nvidia-smi shows who: end own orphaned workers, or ask the host; pick a free card with "
       "CUDA_VISIBLE_DEVICES",
       others, Forecast::kNone});
  return finding;
}

Finding ContextAndLibraries(const Evidence& evidence) {
  Finding finding;
  const uint64_t charge = ContextBytes(evidence);
  const uint64_t context =
      std::min(evidence.Term("context"), charge == 0 ? evidence.Term("context") : charge);
  uint64_t libraries = 0;
  std::string table;
  for (const attribution::Term& term : evidence.breakdown.identity.terms) {
    if (!term.key.starts_with("driver:") || term.bytes <= 0) continue;
    libraries += static_cast<uint64_t>(term.bytes);
    finding.parts.push_back({term.key, static_cast<uint64_t>(term.bytes)});
    table += fmt::format("{}{} {}", table.empty() ? "" : ", ", term.key.substr(7),
                         Size(static_cast<uint64_t>(term.bytes)));
  }
  const uint64_t rest = evidence.Term("rest");
  const uint64_t all = libraries + context + rest;
  finding.numbers = {{"outside PyTorch",
                      fmt::format("context {}, libraries {}{}, remainder {}", Size(context), Size(libraries),
                                  table.empty() ? std::string() : " (" + table + ")", Size(rest))}};
  // A context alone is what every process pays.
  const bool notable = all * 20 >= evidence.total && libraries + rest >= 512 * kMiB;
  if (!notable || evidence.total == 0) {
    finding.parts.clear();
    return finding;
  }
  finding.state = State::kFound;
  finding.confidence = (libraries + context) * 10 >= all * 9 ? Confidence::kHigh : Confidence::kMedium;
  if (finding.confidence != Confidence::kHigh) finding.missing.emplace_back("the caller of the remainder");
  finding.parts.push_back({"rest", rest});
  finding.parts.push_back({"context", context});
  finding.sentence =
      fmt::format("{} of the card is this process's, outside PyTorch's allocator: {}.", Size(all),
                  table.empty() ? "context and code" : table + fmt::format(", context {}", Size(context)));
  const bool nccl = table.find("nccl") != std::string::npos;
  if (nccl) {
    finding.remedies.push_back(
        {"fewer process groups, or NCCL_BUFFSIZE=2097152 and fewer channels (NCCL_MAX_NCHANNELS)", libraries,
         Forecast::kNone});
  } else if (libraries > 0) {
    finding.remedies.push_back(
        {fmt::format("free or shrink the buffers of {}", table), libraries, Forecast::kNone});
  }
  if (rest > libraries && evidence.Environment("CUDA_MODULE_LOADING") != "LAZY") {
    finding.remedies.push_back({"CUDA_MODULE_LOADING=LAZY", rest, Forecast::kNone});
  }
  return finding;
}

Finding DeviceImbalance(const Evidence& evidence) {
  Finding finding;
  std::vector<uint64_t> peaks;
  for (const auto& [index, device] : evidence.source.scan->devices) {
    if (device.allocated.bytes > 0) peaks.push_back(device.allocated.bytes);
  }
  if (peaks.size() < 2) return finding;
  std::sort(peaks.begin(), peaks.end());
  const uint64_t median = peaks[(peaks.size() - 1) / 2];
  const uint64_t here = evidence.scan->allocated.bytes;
  finding.numbers = {{"devices", fmt::format("{} in this process; the median peaks at {}, this one at {}",
                                             peaks.size(), Size(median), Size(here))}};
  constexpr double kUneven = 1.15;
  if (here != peaks.back() || static_cast<double>(here) < kUneven * static_cast<double>(median))
    return finding;
  bool gathers = false;
  for (const LiveRow& row : evidence.live) {
    gathers = gathers || HasFrame(evidence, row.live->block.stack, "data_parallel.py") ||
              row.allocation->operator_name.find("Gather") != std::string::npos;
  }
  finding.state = State::kFound;
  finding.confidence = gathers ? Confidence::kHigh : Confidence::kMedium;
  if (!gathers) finding.missing.emplace_back("frames that gather on this device");
  finding.sentence = fmt::format(
      "GPU {} peaks at {}, the others at {}{}: the fullest card decides what fits.", evidence.device,
      Size(here), Size(median), gathers ? ", because DataParallel gathers outputs and gradients on it" : "");
  finding.remedies.push_back(
      {"DistributedDataParallel, one process a card, with torch.cuda.set_device(local_rank) first",
       here - median, Forecast::kNone});
  return finding;
}

}  // namespace vramtrace::diagnose
