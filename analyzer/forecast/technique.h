#pragma once
// Techniques that change how much memory a run takes: a row each in technique.def, a function each in
// techniques/. A technique edits the stream of requests as the program would ask with it; the peak is then
// whatever the replay says, so that techniques compose and a remedy that lowers one peak exposes the next.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "analyzer/forecast/replay.h"
#include "analyzer/forecast/stream.h"

namespace vramtrace::forecast {

// What a run pays for a technique, in the order in which advice prefers them.
enum class Price : uint8_t { kNothing, kTime, kChangesTraining, kMoreCards };

// Parameters that a user may give: "lora:rank=16", "checkpointing:every=2", "tensor-parallel:cards=4".
struct TechniqueOptions {
  uint32_t every = 1;              // checkpointing: each how many-th block
  uint32_t rank = 16;              // LoRA, QLoRA, GaLore
  uint32_t cards = 2;              // parallel techniques
  std::string targets = "linear";  // LoRA: linear (all of them), attention
  uint32_t chunks = 8;             // chunked cross-entropy
  uint32_t blocks = 1;             // freezing: how many of the last blocks are trained
  uint32_t steps = 2;              // gradient accumulation: micro-batches a step
  uint32_t length = 0;             // sequence length; 0: half of the run's
};

// The edited stream, or the reason why the technique cannot be applied here: one clause, lower case.
using Edited = std::variant<Stream, std::string>;

// What the edited stream also changes of a replay.
using SettingsEdit = void (*)(ReplayOptions* options, const TechniqueOptions& chosen);

struct Technique {
  std::string_view key;    // on the command line and in JSON: "checkpointing"; never changes
  std::string_view words;  // for people: "activation checkpointing of every block"
  Price price = Price::kNothing;
  double slower_low = 0;  // share of the step time, 0.2 is 20 %
  double slower_high = 0;
  std::string_view training = {};      // what it changes in the training: one clause; empty: nothing
  std::string_view pytorch = {};       // the setting that turns it on
  std::string_view transformers = {};  // likewise; empty: no single setting
  std::string_view lightning = {};
  std::string_view source = {};  // of the edit and of the cost
  double residual_low = 0;       // of predicted allocated bytes against runs, as shares: the band (bands.h)
  double residual_high = 0;
  // True where the run has it on already.
  bool (*is_on)(const Stream& stream) = nullptr;
  Edited (*apply)(const Stream& stream, const TechniqueOptions& options) = nullptr;
  SettingsEdit settings = nullptr;  // nullptr: none
};

// Every row of technique.def.
[[nodiscard]] std::span<const Technique> Techniques();
// nullptr when there is none.
[[nodiscard]] const Technique* FindTechnique(std::string_view key);

struct Chosen {
  const Technique* technique = nullptr;
  TechniqueOptions options;
};
// "checkpointing" or "lora:rank=8,targets=attention". The string is an error that names the near ones.
[[nodiscard]] std::variant<Chosen, std::string> ParseTechnique(std::string_view text);

// Applies several, in the order of the table. The string names the one that cannot be applied, and why.
[[nodiscard]] std::variant<Stream, std::string> ApplyTechniques(const Stream& stream,
                                                                std::span<const Chosen> chosen);

}  // namespace vramtrace::forecast
