#include "analyzer/estimate/families.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyzer/estimate/family_builders.h"
#include "analyzer/estimate/family_decoder.h"

namespace vramtrace::estimate {
namespace {

constexpr Family kFamilies[] = {
#define VRAMTRACE_FAMILY(type, name, build, head) {type, name, build, head},
#include "analyzer/estimate/families.def"
#undef VRAMTRACE_FAMILY
};

// How architecture names end, and what head that is.
struct HeadName {
  std::string_view ending;
  Head head;
};
constexpr HeadName kHeadNames[] = {
    {"ForCausalLM", Head::kLanguageModel},
    {"LMHeadModel", Head::kLanguageModel},
    {"ForConditionalGeneration", Head::kLanguageModel},
    {"ForMaskedLM", Head::kMaskedWords},
    {"ForSequenceClassification", Head::kClasses},
    {"ForImageClassification", Head::kClasses},
    {"ForTokenClassification", Head::kTokenClasses},
    {"ForQuestionAnswering", Head::kTokenClasses},
    {"Model", Head::kNone},
};

std::string Printable(std::string text) {
  text.resize(std::min<size_t>(text.size(), 60));
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c > 0x7e; }, '?');
  return text;
}

// Files of models that also see or hear: the text model is inside.
std::optional<Config> TextModel(const Config& config) {
  if (FindFamily(config.ModelType()) != nullptr) return std::nullopt;
  for (const char* key : {"text_config", "language_config", "llm_config"}) {
    if (std::optional<Config> inner = config.Inner(key)) return inner;
  }
  return std::nullopt;
}

}  // namespace

std::span<const Family> Families() { return kFamilies; }

const Family* FindFamily(std::string_view model_type) {
  const auto* found = std::find_if(std::begin(kFamilies), std::end(kFamilies),
                                   [&](const Family& family) { return family.model_type == model_type; });
  return found == std::end(kFamilies) ? nullptr : found;
}

trace::Result<Model> Recognise(Config config) {
  const std::string outer = config.ModelType();
  std::string note;
  std::string architecture = Printable(config.ArchitectureName());
  if (std::optional<Config> inner = TextModel(config)) {
    note = fmt::format("only the text model inside of '{}' is counted: add its vision or audio part",
                       Printable(outer));
    config = std::move(*inner);
  }
  const Family* family = FindFamily(config.ModelType());
  Head head = family != nullptr ? family->usual_head : Head::kLanguageModel;
  if (note.empty()) {
    for (const HeadName& row : kHeadNames) {
      if (architecture.ends_with(row.ending)) {
        head = row.head;
        break;
      }
    }
  }
  std::string name = !architecture.empty() ? architecture : Printable(config.ModelType());
  if (family == nullptr) {
    // What a decoder of the Llama kind is known by; ReadDecoder names the first field that is missing.
    (void)ReadDecoder(config);
    if (config.error()) {
      trace::Error error = *config.error();
      error.message =
          fmt::format("model type '{}' is not one that is known, and it is not like a Llama either: {}",
                      Printable(config.ModelType()), error.message);
      return error;
    }
    head = Head::kLanguageModel;
  }
  return Model{family, std::move(name), head, std::move(config), std::move(note)};
}

uint64_t PipelineLayers(const Model& model) {
  const bool stack =
      model.family == nullptr || model.family->build == BuildLlama || model.config.Has("num_hidden_layers");
  if (!stack || model.head != Head::kLanguageModel) return 0;
  if (model.family != nullptr && (model.family->build == BuildBert || model.family->build == BuildOpt))
    return 0;
  Config config = model.config;
  return config.WholeOr("num_hidden_layers", 0, 1, kMostLayers);
}

trace::Result<Tape> WriteTape(const Model& model, const TapeOptions& options) {
  Config config = model.config;
  Tape tape(options);
  if (model.family != nullptr) {
    model.family->build(config, tape, model.head);
  } else {
    BuildLlama(config, tape, model.head);
  }
  if (config.error()) return *config.error();
  constexpr uint64_t kMostParameters = uint64_t{1} << 50;
  if (tape.too_large() || tape.ParameterCount() > kMostParameters) {
    return trace::Error{
        config.file(), std::nullopt,
        "these sizes make a tensor above 16 TiB or a model above 10^15 parameters: check the widths, "
        "--batch and --seq"};
  }
  tape.Finish();
  return tape;
}

}  // namespace vramtrace::estimate
