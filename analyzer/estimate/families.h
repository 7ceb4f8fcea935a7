#pragma once
// Which family a config.json belongs to, and its tape. Shapes are transformers' own (version 5.24,
// models/<type>/ configuration_<type>.py and modeling_<type>.py); parameter counts equal those of its classes
// (tests/unit/ estimate_families_test.cpp holds the referee's table).

#include <span>
#include <string>
#include <string_view>

#include "analyzer/estimate/config.h"
#include "analyzer/estimate/tape.h"

namespace vramtrace::estimate {

enum class Head : uint8_t {
  kNone,           // hidden states only
  kLanguageModel,  // a number a word of the vocabulary, each position
  kMaskedWords,    // the same behind BERT's transform
  kClasses,        // a few numbers a sequence or picture
  kTokenClasses,   // a few numbers a token
};

struct Family {
  std::string_view model_type;
  std::string_view name;
  void (*build)(Config& config, Tape& tape, Head head);
  Head usual_head;
};

[[nodiscard]] std::span<const Family> Families();
// nullptr where the type is none of ours.
[[nodiscard]] const Family* FindFamily(std::string_view model_type);

// What a config is read as.
struct Model {
  const Family* family = nullptr;  // nullptr: taken as a Llama-like decoder, with a wide band
  std::string name;                // the architecture's name, or the model type
  Head head = Head::kNone;
  Config config;     // of the text model where the file holds several
  std::string note;  // what was left out
};

// Finds the family, or a decoder-like shape; an error names the field that is missing.
[[nodiscard]] trace::Result<Model> Recognise(Config config);

// Layers that a pipeline could be cut through; 0 where the model is not a plain stack.
[[nodiscard]] uint64_t PipelineLayers(const Model& model);

// Writes the model under these options; an error names the field that is wrong.
[[nodiscard]] trace::Result<Tape> WriteTape(const Model& model, const TapeOptions& options);

}  // namespace vramtrace::estimate
