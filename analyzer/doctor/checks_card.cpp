// What the card is: name, memory, tenants, multiprocessors, clocks.
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>

#include "analyzer/doctor/checks.h"
#include "analyzer/report/units.h"

namespace vramtrace::doctor {
namespace {

using report::Size;

// Drivers move a card's total by up to this (catalogue, Derived totals).
constexpr double kDriversMove = 0.025;

double Ratio(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

Verdict Unlisted(const CardFacts& card) {
  return NotChecked(fmt::format("the catalogue does not know {}",
                                card.cuda.name.empty() ? card.board.name : card.cuda.name));
}

// The slice whose multiprocessors the card has; its memory in the catalogue.
const catalogue::MigProfile* SliceOf(const catalogue::Gpu& gpu, const CardFacts& card) {
  const catalogue::MigProfile* best = nullptr;
  for (const catalogue::MigProfile& slice : catalogue::MigProfiles()) {
    const bool family = gpu.id.starts_with(slice.gpu.substr(0, slice.gpu.find('-')));
    const bool named = card.cuda.name.find(std::string(slice.profile)) != std::string::npos;
    if (family && (named || slice.multiprocessors == card.cuda.multiprocessors) &&
        std::fabs(Ratio(card.cuda.total, slice.memory_bytes) - 1) < 0.05) {
      best = &slice;
    }
  }
  return best;
}

}  // namespace

Verdict CheckName(const Facts& /*facts*/, const CardFacts* card) {
  const std::string& name = card->cuda.name.empty() ? card->board.name : card->cuda.name;
  const catalogue::Gpu* gpu = Expected(*card);
  if (gpu == nullptr && !card->sold_as.empty())
    return NotChecked(catalogue::UnknownGpuMessage(card->sold_as));
  if (gpu == nullptr) return Unlisted(*card);
  CardFacts itself = *card;
  itself.sold_as.clear();
  const catalogue::Gpu* really = Expected(itself);
  if (!card->sold_as.empty() && really != gpu) {
    return Off(fmt::format("{}, sold as {}", name, gpu->device_name), "another card than was promised",
               "ask for the card that was paid for");
  }
  return Good(fmt::format("{} ({})", name, gpu->id));
}

Verdict CheckMemory(const Facts& facts, const CardFacts* card) {
  if (card->cuda.total == 0)
    return NotChecked(facts.software.why.empty() ? "CUDA was not asked" : facts.software.why);
  const catalogue::Gpu* gpu = Expected(*card);
  if (gpu == nullptr) return Unlisted(*card);
  const auto totals = catalogue::TotalsOf(*gpu);
  if (!totals) return NotChecked(fmt::format("the catalogue has no total of {}", gpu->id));
  const uint64_t total = card->cuda.total;
  const double share = Ratio(total, totals->cuda_bytes);
  std::string found = fmt::format("CUDA reports {}, the catalogue {} ({:+.1f} %)", Size(total),
                                  Size(totals->cuda_bytes), (share - 1) * 100);
  if (card->board.has_memory) {
    const uint64_t board = card->board.memory.total;
    found += fmt::format("; the board has {}", Size(board));
    if (card->board.memory.reserved > 0)
      found += fmt::format(", {} of it reserved by driver and firmware", Size(card->board.memory.reserved));
  }
  if (share > 1 + kDriversMove)
    return Off(found, "a board with more memory than its name has",
               "look up the modified board's row: vramtrace gpus");
  if (share >= 1 - kDriversMove) return Good(found);

  const std::string partition = Partition(facts, *card);
  if (partition == "a MIG slice") {
    const catalogue::MigProfile* slice = SliceOf(*gpu, *card);
    return Off(found, slice == nullptr ? "a MIG slice" : fmt::format("a MIG slice, {}", slice->profile),
               "this is what a program gets: plan with it, or rent the whole card");
  }
  if (!partition.empty()) return Off(found, partition, "plan with CUDA's figure, or rent the whole card");
  // GDDR6 cards give a sixteenth to ECC (catalogue notes).
  if (card->board.ecc.Or(false) && std::fabs(share - 15.0 / 16) < kDriversMove) {
    return Off(found, "ECC is on, which takes a sixteenth",
               "`nvidia-smi -e 0` and a restart give it back, at the price of ECC");
  }
  const bool whole_board =
      card->board.has_memory && Ratio(card->board.memory.total, totals->nvml_bytes) >= 1 - kDriversMove;
  if (whole_board) {
    return Off(found,
               "a limiter between program and driver (HAMi-core or its like): the board is whole, CUDA's "
               "answer is not",
               "plan with CUDA's figure; the limit is refused as out of memory while memory is free");
  }
  return Off(found, "a smaller board, a virtual GPU, or a limiter that NVML hides too",
             card->board.seen ? "ask the provider" : "NVML would tell them apart: " + card->board.why);
}

// Allocations of others are seen in NVML's list, or else as bytes that are gone before this process has any.
Verdict CheckTenants(const Facts& facts, const CardFacts* card) {
  uint64_t others = 0;
  size_t processes = 0;
  bool counted = true;
  if (card->board.processes) {
    for (const nvml::Process& process : *card->board.processes.value) {
      if (process.pid == static_cast<uint32_t>(::getpid())) continue;
      ++processes;
      counted = counted && process.bytes.has_value();
      others += process.bytes.value_or(0);
    }
  } else if (card->cuda.total == 0) {
    return NotChecked(card->board.processes.why.empty() ? facts.why_no_nvml : card->board.processes.why);
  }
  if (processes > 0) {
    return Off(fmt::format("{} other process{}, {}", processes, processes == 1 ? "" : "es",
                           counted ? "holding " + Size(others) : "of unknown size"),
               "somebody else uses this card",
               "choose another card, or end what you left running: `nvidia-smi` lists it");
  }
  if (card->cuda.total != 0) {
    const catalogue::Gpu* gpu = Expected(*card);
    const uint64_t used = card->cuda.total - card->cuda.free;
    const uint64_t context = gpu == nullptr ? 600u << 20 : catalogue::ContextOf(*gpu).bytes;
    // Contexts differ by some 150 MiB between drivers; libraries load code on top.
    if (used > context + (512u << 20)) {
      return Off(fmt::format("{} in use, {} of them this process's context", Size(used), Size(context)),
                 "somebody outside this container uses the card, whom NVML does not list",
                 "choose another card");
    }
    return Good(fmt::format("none; {} in use by this process's context", Size(used)));
  }
  return Good("none");
}

Verdict CheckMultiprocessors(const Facts& facts, const CardFacts* card) {
  const catalogue::Gpu* gpu = Expected(*card);
  if (card->cuda.multiprocessors == 0)
    return NotChecked(facts.software.why.empty() ? "CUDA was not asked" : facts.software.why);
  if (gpu == nullptr) return Unlisted(*card);
  const int seen = card->cuda.multiprocessors;
  const std::string found = fmt::format("{} of {}", seen, gpu->multiprocessors);
  if (seen == gpu->multiprocessors) return Good(found);
  const std::string partition = Partition(facts, *card);
  if (seen < gpu->multiprocessors) {
    return Off(fmt::format("{}, {:.0f} % fewer", found, 100.0 - 100.0 * seen / gpu->multiprocessors),
               partition.empty() ? "a cut-down variant under the same name" : partition,
               "compute-bound work is slower by about as much; ask for the full card");
  }
  return Off(found, "another variant than the catalogue's", "compare with the data sheet");
}

Verdict CheckClocks(const Facts& /*facts*/, const CardFacts* card) {
  const BoardFacts& board = card->board;
  if (!board.seen) return NotChecked(board.why);
  const catalogue::Gpu* gpu = Expected(*card);
  if (gpu == nullptr) return Unlisted(*card);
  std::string found;
  if (board.clock_most)
    found += fmt::format("SM clock up to {} MHz (catalogue {}), ", *board.clock_most, gpu->clock_mhz);
  if (board.watts_limit)
    found += fmt::format("power limit {:.0f} W (catalogue {}), ", *board.watts_limit, gpu->power_watts);
  if (board.celsius) found += fmt::format("{} C, ", *board.celsius);
  if (found.empty()) return NotChecked(board.clock_most.why);
  found.resize(found.size() - 2);
  if ((board.throttle.Or(0) & nvml::kThermal) != 0) {
    return Off(found, "clocks are lowered by heat now", "another machine; or cooling");
  }
  if (board.watts_limit && *board.watts_limit < 0.9 * gpu->power_watts) {
    return Off(found, "the power limit is set below the card's own",
               "`nvidia-smi -pl` raises it, with permission");
  }
  if (board.clock_most && gpu->clock_mhz > 0 && *board.clock_most < 0.9 * gpu->clock_mhz) {
    return Off(found, "the largest clock is below the catalogue's",
               "application clocks may be locked: `nvidia-smi -rgc`");
  }
  return Good(found);
}

}  // namespace vramtrace::doctor
