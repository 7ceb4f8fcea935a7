// What is around the card: network, disk, memory, versions, the container.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "analyzer/doctor/checks.h"
#include "analyzer/report/units.h"

namespace vramtrace::doctor {
namespace {

using report::Size;

// Docker's own default for /dev/shm is 64 MiB; a loader with a few workers holds some batches in it [ours].
constexpr uint64_t kLeastShared = 1u << 30;
constexpr double kCoresPerCard = 4;  // public report examples#387: at least four a card for image training

std::string Gigabytes(double bytes) { return fmt::format("{:.2f} GB/s", bytes / 1e9); }

}  // namespace

Verdict CheckNetwork(const Facts& facts, const CardFacts*) {
  std::string found;
  for (const NetworkCard& card : facts.host.network) {
    found += fmt::format("{}{} {}", found.empty() ? "" : ", ", card.kind, card.name);
    found += card.gigabits ? fmt::format(" {:g} Gbit/s", *card.gigabits) : std::string(" of unknown speed");
    if (!card.up) found += " (down)";
  }
  return found.empty() ? NotChecked("no network card is shown to this container") : Good(found);
}

Verdict CheckSequential(const Facts& facts, const CardFacts*) {
  const DiskRates& disk = facts.host.disk;
  if (!disk.sequential) return NotChecked(disk.why);
  const std::string found = fmt::format("{} from {}{}", Gigabytes(*disk.sequential), disk.folder,
                                        disk.cached ? ", perhaps from the page cache" : "");
  // A SATA disk that turns reads some 0.15 GB/s, a network share often less [ours].
  if (*disk.sequential < 0.2e9)
    return Off(found, "a turning or remote disk", "copy the data to a local disk before training");
  return Good(found);
}

Verdict CheckRandom(const Facts& facts, const CardFacts*) {
  const DiskRates& disk = facts.host.disk;
  if (!disk.random) return NotChecked(disk.why);
  const double reads = *disk.random / 65536;
  const std::string found = fmt::format("{:.0f} reads a second of 64 KiB from {}{}", reads, disk.folder,
                                        disk.cached ? ", perhaps from the page cache" : "");
  // An epoch over images of that size at 500 a second is what a small model takes [ours].
  if (reads < 500)
    return Off(found, "a turning or remote disk", "few large files read in order instead of many small ones");
  return Good(found);
}

Verdict CheckHostMemory(const Facts& facts, const CardFacts*) {
  const HostFacts& host = facts.host;
  if (!host.memory_free || !host.memory_total) return NotChecked("/proc/meminfo cannot be read");
  uint64_t cards = 0;
  for (const CardFacts& card : facts.cards) cards += card.cuda.total;
  std::string found = fmt::format("{} of {} free", Size(*host.memory_free), Size(*host.memory_total));
  if (cards > 0) found += fmt::format("; the cards hold {}", Size(cards));
  if (cards > 0 && *host.memory_free < cards / facts.cards.size()) {
    return Off(found, "less free host memory than one card has",
               "loading a checkpoint through the host and offloading need as much");
  }
  return Good(found);
}

Verdict CheckSharedMemory(const Facts& facts, const CardFacts*) {
  const HostFacts& host = facts.host;
  if (!host.shared_total || !host.shared_free) return NotChecked("/dev/shm is not there");
  const std::string found = fmt::format("{} of {} free", Size(*host.shared_free), Size(*host.shared_total));
  if (*host.shared_free >= kLeastShared) return Good(found);
  return Off(
      found, host.container ? "the container's default" : "it is small or full",
      "docker run --shm-size=8g, or --ipc=host; else num_workers=0: workers die of a bus error without it");
}

// CUDA's minor versions are compatible within a major (CUDA Compatibility guide); the card's code must be in
// the wheel, or code of the same major below it.
Verdict CheckVersions(const Facts& facts, const CardFacts*) {
  const Software& software = facts.software;
  std::string found;
  if (!software.driver.empty()) found += fmt::format("driver {}", software.driver);
  if (software.driver_cuda)
    found += fmt::format(" for CUDA {}.{}", *software.driver_cuda / 1000, *software.driver_cuda % 1000 / 10);
  if (!software.torch.empty()) {
    found += fmt::format("{}PyTorch {} for CUDA {}", found.empty() ? "" : ", ", software.torch,
                         software.torch_cuda.empty() ? "none" : software.torch_cuda);
  }
  if (found.empty())
    return NotChecked(software.why.empty() ? "neither driver nor PyTorch answered" : software.why);
  if (software.torch.empty()) return NotChecked(found + "; PyTorch was not asked");
  if (software.torch_cuda.empty()) {
    return Off(found, "PyTorch is built for the CPU", "pip install torch from the index of a CUDA version");
  }
  const int wheel = std::atoi(software.torch_cuda.c_str());
  if (software.driver_cuda && *software.driver_cuda / 1000 < wheel) {
    return Off(found, "the driver is too old for this PyTorch's CUDA",
               fmt::format("PyTorch for CUDA {}, or a newer driver", *software.driver_cuda / 1000));
  }
  for (const CardFacts& card : facts.cards) {
    if (software.architectures.empty() || card.cuda.compute_major == 0) continue;
    const int own = 10 * card.cuda.compute_major + card.cuda.compute_minor;
    const bool fits = std::any_of(
        software.architectures.begin(), software.architectures.end(), [&](const std::string& name) {
          const size_t digits = name.find_first_of("0123456789");
          if (digits == std::string::npos) return false;
          const int code = std::atoi(name.c_str() + digits);
          return name.starts_with("compute_") ? code <= own : code / 10 == own / 10 && code <= own;
        });
    if (!fits) {
      return Off(fmt::format("{}, without code for compute capability {}.{}", found, card.cuda.compute_major,
                             card.cuda.compute_minor),
                 "this PyTorch has no kernels for the card",
                 "a PyTorch whose torch.cuda.get_arch_list() has the card");
    }
  }
  return Good(found);
}

Verdict CheckContainer(const Facts& facts, const CardFacts*) {
  const HostFacts& host = facts.host;
  if (host.cores <= 0) return NotChecked("the cores that may be used are not known");
  std::string found = fmt::format("{:g} of {:g} cores", host.cores, host.cores_machine);
  if (host.container_memory) found += fmt::format(", {} of memory", Size(*host.container_memory));
  if (host.processes_limit) found += fmt::format(", {} processes", *host.processes_limit);
  if (host.locked_limit) found += fmt::format(", {} locked", Size(*host.locked_limit));
  const auto cards = static_cast<double>(std::max<size_t>(1, facts.cards.size()));
  if (!facts.cards.empty() && host.cores < kCoresPerCard * cards) {
    return Off(found, "fewer than four cores a card", "loader workers will be what limits image training");
  }
  if (host.processes_limit && *host.processes_limit < 1024) {
    return Off(found, "few processes and threads are allowed", "docker run --pids-limit");
  }
  return Good(found);
}

}  // namespace vramtrace::doctor
