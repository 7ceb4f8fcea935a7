#pragma once
// How long a job takes on another card: not measured, bounded. A job that is limited by arithmetic scales
// with the matrix rate, one limited by memory with the bandwidth; a real one lies between, so both bounds are
// the band and the middle is their geometric mean [ours]. Launch overheads, data loading and library quality
// are not in it.

#include <optional>
#include <string>

#include "preload/catalogue/catalogue.h"

namespace vramtrace::gpus {

struct Range {
  double low = 0;
  double expected = 0;
  double high = 0;
};

// What the job computes in: decides which rate of a card counts.
enum class Arithmetic { kBf16, kFp32 };

// TFLOPS of a card for it; nothing where the catalogue has no figure (no BF16 tensor cores).
[[nodiscard]] std::optional<double> RateOf(const catalogue::Gpu& gpu, Arithmetic arithmetic);

// Time on `gpu` over time on `reference`. Nothing when a rate is unknown; `why` then says which. The band is
// the two bounds widened by 20 % on either side, because two cards rarely reach the same share of their
// rates.
[[nodiscard]] std::optional<Range> TimeRatio(const catalogue::Gpu& gpu, const catalogue::Gpu& reference,
                                             Arithmetic arithmetic, std::string* why);

// Hours for `flops` floating point operations, at 20 to 55 % of the rate, 38 % in the middle: what published
// training runs of transformers reach on one node (MFU; PaLM, arXiv 2204.02311, table 3: 21 to 46 %; Llama 3,
// arXiv 2407.21783, table 4: 38 to 43 %), widened for small batches and for consumer cards [ours].
[[nodiscard]] std::optional<Range> HoursForWork(const catalogue::Gpu& gpu, double flops,
                                                Arithmetic arithmetic, std::string* why);

// How many times one card's speed `cards` of them reach: between what is left when communication is half of
// the time (a third over NVLink-class links) and nearly all. One card: exactly 1. techniques of
// communication: ring volume over link rate [ours, a rule of thumb with a wide band; a run on the machine is
// the only proof].
[[nodiscard]] Range SpeedUp(const catalogue::Gpu& gpu, int cards);

}  // namespace vramtrace::gpus
