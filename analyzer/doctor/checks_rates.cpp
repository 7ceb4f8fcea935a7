// How fast it is: measured against the catalogue.
#include <fmt/format.h>

#include <algorithm>

#include "analyzer/doctor/checks.h"

namespace vramtrace::doctor {
namespace {

// The share of a data sheet's rate that a good program reaches on a healthy card [ours, not measured by this
// project]: below nine tenths of it the card is called slow. Large matrix products reach most of it on cards
// up to compute capability 8, two thirds on the next ones, whose power limit binds first; a copy within the
// card nine tenths of the bandwidth.
constexpr double kShort = 0.9;
constexpr double kFp32Share = 0.9;
constexpr double kTensorShare = 0.8;
constexpr double kNewTensorShare = 0.65;
constexpr double kCopyShare = 0.9;
constexpr double kLinkShare = 0.85;

std::string WhySlow(const Facts& facts, const CardFacts& card) {
  const catalogue::Gpu* gpu = Expected(card);
  if (gpu != nullptr && card.cuda.multiprocessors > 0 && card.cuda.multiprocessors < gpu->multiprocessors) {
    return "multiprocessors are missing";
  }
  std::string partition = Partition(facts, card);
  if (!partition.empty()) return partition;
  const uint64_t throttle = card.board.throttle.Or(0);
  if ((throttle & nvml::kThermal) != 0) return "clocks are lowered by heat";
  if (gpu != nullptr && card.board.watts_limit && *card.board.watts_limit < 0.9 * gpu->power_watts) {
    return "the power limit is set below the card's own";
  }
  if (card.board.processes && card.board.processes.value->size() > 1)
    return "somebody else computes on the card";
  return "not clear: heat, power, a neighbour, or a slower card than its name";
}

// Nothing else measures; on a simulated card times mean nothing without a clock.
std::optional<Verdict> Unmeasured(const Facts& facts, const Measured& measured) {
  if (facts.simulated && !facts.has_clock) return NotChecked("on a simulated card times mean nothing");
  if (!measured.value) return NotChecked(measured.why);
  return std::nullopt;
}

Verdict Compare(const Facts& facts, const CardFacts& card, Rate rate, double catalogue, double share) {
  const Measured measured = card.Get(rate);
  if (const auto verdict = Unmeasured(facts, measured)) return *verdict;
  if (catalogue <= 0)
    return NotChecked(
        fmt::format("{} measured; the catalogue has no figure", RateText(rate, *measured.value)));
  const std::string found = fmt::format("{}, {:.0f} % of the catalogue's {}", RateText(rate, *measured.value),
                                        100 * *measured.value / catalogue, RateText(rate, catalogue));
  if (*measured.value >= kShort * share * catalogue) return Good(found);
  return Off(fmt::format("{}; {:.0f} % would be usual", found, 100 * share), WhySlow(facts, card),
             "measure again when the machine is idle; then ask for another one");
}

double TensorShare(const catalogue::Gpu& gpu) {
  return gpu.compute_major >= 9 ? kNewTensorShare : kTensorShare;
}

// Payload of a link in bytes a second: PCI-SIG's rates with 128b/130b from generation 3 on, 8b/10b before.
double LinkBytes(nvml::PcieLink link) {
  const double lane = link.generation >= 3 ? 0.9846e9 * (1 << (link.generation - 3))
                                           : 0.25e9 * (1 << (std::max(1U, link.generation) - 1));
  return lane * link.width;
}

}  // namespace

Verdict CheckFp32(const Facts& facts, const CardFacts* card) {
  const catalogue::Gpu* gpu = Expected(*card);
  return Compare(facts, *card, Rate::kFp32, gpu == nullptr ? 0 : gpu->fp32_tflops * 1e12, kFp32Share);
}

// The catalogue has BF16 alone: TF32 runs at half of it on every card that has both (NVIDIA's data sheets).
Verdict CheckTf32(const Facts& facts, const CardFacts* card) {
  const catalogue::Gpu* gpu = Expected(*card);
  if (gpu != nullptr && gpu->compute_major < 8) return NotChecked("the card has no TF32");
  return Compare(facts, *card, Rate::kTf32, gpu == nullptr ? 0 : gpu->bf16_tflops / 2 * 1e12,
                 gpu == nullptr ? kTensorShare : TensorShare(*gpu));
}

Verdict CheckBf16(const Facts& facts, const CardFacts* card) {
  const catalogue::Gpu* gpu = Expected(*card);
  if (gpu != nullptr && gpu->bf16_tflops <= 0) return NotChecked("the card has no BF16 tensor cores");
  return Compare(facts, *card, Rate::kBf16, gpu == nullptr ? 0 : gpu->bf16_tflops * 1e12,
                 gpu == nullptr ? kTensorShare : TensorShare(*gpu));
}

Verdict CheckBandwidth(const Facts& facts, const CardFacts* card) {
  const catalogue::Gpu* gpu = Expected(*card);
  return Compare(facts, *card, Rate::kBandwidth, gpu == nullptr ? 0 : gpu->bandwidth_gb_per_s * 1e9,
                 kCopyShare);
}

// An idle card lowers its generation to save power, never its width.
Verdict CheckPcie(const Facts& /*facts*/, const CardFacts* card) {
  if (!card->board.seen) return NotChecked(card->board.why);
  if (!card->board.link_now) return NotChecked(card->board.link_now.why);
  if (!card->board.link_most) return NotChecked(card->board.link_most.why);
  const nvml::PcieLink now = *card->board.link_now;
  const nvml::PcieLink most = *card->board.link_most;
  const std::string found = fmt::format("generation {} x{}, the card's most {} x{}", now.generation,
                                        now.width, most.generation, most.width);
  if (now.width < most.width) {
    return Off(found, "a slot with fewer lanes, or a riser",
               "copies from the host take longer by as much; loaders and offload suffer, training inside the "
               "card does not");
  }
  return Good(found);
}

Verdict CheckHostToDevice(const Facts& facts, const CardFacts* card) {
  const Measured measured = card->Get(Rate::kHostToDevice);
  if (const auto verdict = Unmeasured(facts, measured)) return *verdict;
  const Measured back = card->Get(Rate::kDeviceToHost);
  std::string found = RateText(Rate::kHostToDevice, *measured.value);
  if (back.value) found += fmt::format(", back {}", RateText(Rate::kDeviceToHost, *back.value));
  if (!card->board.link_most)
    return NotChecked(found + " measured; the link's most is not known: " + card->board.why);
  const double link = LinkBytes(*card->board.link_most);
  found += fmt::format(", {:.0f} % of what the card's link carries", 100 * *measured.value / link);
  if (*measured.value >= kShort * kLinkShare * link) return Good(found);
  const bool narrow =
      card->board.link_now && card->board.link_now.value->width < card->board.link_most.value->width;
  return Off(found,
             narrow ? "the link has fewer lanes than the card"
                    : "a slower generation of the host, another root, or a busy host",
             "pinned memory and fewer copies hide it; offload to the host is slower by as much");
}

// The catalogue has no figure to judge by: a rate to compare machines with.
Verdict CheckResNet(const Facts& facts, const CardFacts* card) {
  const Measured measured = card->Get(Rate::kResNet50);
  if (facts.simulated) return NotChecked("a simulated card computes no convolutions");
  if (!measured.value) return NotChecked(measured.why);
  return Good(RateText(Rate::kResNet50, *measured.value) + ": compare it with another machine's");
}

namespace {

// Of the first card: what is between cards is measured from it.
Measured OfMachine(const Facts& facts, Rate rate) {
  return facts.cards.empty() ? Measured() : facts.cards[0].Get(rate);
}

std::optional<Verdict> NeedsSeveral(const Facts& facts) {
  if (facts.cards.empty())
    return NotChecked(facts.software.why.empty() ? "no card was found" : facts.software.why);
  if (facts.cards.size() == 1) return NotChecked("one card");
  return std::nullopt;
}

}  // namespace

Verdict CheckLinks(const Facts& facts, const CardFacts*) {
  if (const auto verdict = NeedsSeveral(facts)) return *verdict;
  unsigned least = ~0U;
  bool known = true;
  for (const CardFacts& card : facts.cards) {
    known = known && card.board.seen;
    least = std::min(least, card.board.nvlinks.Or(0));
  }
  if (!known) return NotChecked(facts.cards[0].board.why);
  const catalogue::Gpu* gpu = Expected(facts.cards[0]);
  const bool should = gpu != nullptr && gpu->gpu_link.find("NVLink") != std::string_view::npos &&
                      gpu->gpu_link.find("bridge") == std::string_view::npos &&
                      !gpu->gpu_link.starts_with("none");
  std::string found = least > 0 ? fmt::format("{} NVLinks a card", least) : std::string("PCIe only");
  const Measured peer = OfMachine(facts, Rate::kPeer);
  if (peer.value && !(facts.simulated && !facts.has_clock))
    found += ", a copy from card to card " + RateText(Rate::kPeer, *peer.value);
  if (least == 0 && should) {
    return Off(found, fmt::format("{} has {} and no link is active", gpu->device_name, gpu->gpu_link),
               "a PCIe board under the same name, or links switched off: `nvidia-smi topo -m`");
  }
  return Good(found);
}

Verdict CheckAllReduce(const Facts& facts, const CardFacts*) {
  if (const auto verdict = NeedsSeveral(facts)) return *verdict;
  const Measured measured = OfMachine(facts, Rate::kAllReduce);
  if (facts.simulated) return NotChecked("a simulated card's collectives take no time");
  if (!measured.value) return NotChecked(measured.why);
  return Good(RateText(Rate::kAllReduce, *measured.value) + " a card, as NCCL counts a ring");
}

Verdict CheckScaling(const Facts& facts, const CardFacts*) {
  if (const auto verdict = NeedsSeveral(facts)) return *verdict;
  const Measured measured = OfMachine(facts, Rate::kScaling);
  if (const auto verdict = Unmeasured(facts, measured)) return *verdict;
  const auto cards = static_cast<double>(facts.cards.size());
  const std::string found = fmt::format("{:.0f} cards do the work of {:.2f}", cards, *measured.value);
  // Four cards at least three times: three quarters, which holds while exposed communication is at most a
  // third of the computing.
  if (*measured.value >= 0.75 * cards) return Good(found);
  return Off(found, "communication takes more than a third of the computing, or one card is slower",
             "larger micro-batches, accumulation without synchronising, cards with NVLink");
}

}  // namespace vramtrace::doctor
