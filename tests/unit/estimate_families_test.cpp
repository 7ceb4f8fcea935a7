// Parameter counts of published models, against transformers' own classes (estimate_referee.def).
#include <gmock/gmock.h>

#include <set>

#include "analyzer/estimate/families.h"
#include "tests/unit/estimate_files.h"

namespace vramtrace::estimate {
namespace {

using testing::HasSubstr;

struct Referee {
  const char* model;
  uint64_t count;
  const char* config;
};
constexpr Referee kReferee[] = {
#define VRAMTRACE_REFEREE(model, count, config) {model, count, config},
#include "tests/unit/estimate_referee.def"
#undef VRAMTRACE_REFEREE
};

TEST(Families, CountWhatTransformersCounts) {
  for (const Referee& row : kReferee) {
    EXPECT_EQ(EstimateOf(ModelFrom(row.config), {.sequence = 16}).parameters, row.count) << row.model;
  }
}

TEST(Families, EachHasARefereesCount) {
  std::set<std::string> counted;
  for (const Referee& row : kReferee) counted.insert(ModelFrom(row.config).config.ModelType());
  for (const Family& family : Families()) {
    EXPECT_TRUE(counted.contains(std::string(family.model_type))) << family.model_type << " has no count";
  }
  EXPECT_EQ(counted.size(), Families().size());
}

TEST(Families, EachTrainsAndAnswersInAnyPrecision) {
  std::set<std::string> seen;
  for (const Referee& row : kReferee) {
    const Model model = ModelFrom(row.config);
    if (!seen.insert(model.config.ModelType()).second) continue;
    const Estimate bf16 = EstimateOf(model, {.batch = 2, .sequence = 64});
    const Estimate fp32 = EstimateOf(model, {.batch = 2, .sequence = 64, .weights = Dtype::kFp32});
    const Estimate autocast =
        EstimateOf(model, {.batch = 2, .sequence = 64, .precision = Precision::kAutocast});
    const Estimate answers = EstimateOf(model, {.method = Method::kInference, .batch = 2, .sequence = 64});
    EXPECT_GE(bf16.AtPeak().Total(), 8 * bf16.parameters) << row.model;
    EXPECT_GE(fp32.AtPeak().Total(), 16 * fp32.parameters) << row.model;
    EXPECT_GE(autocast.AtPeak().Total(), 16 * fp32.parameters) << row.model;
    EXPECT_LT(bf16.AtPeak().Total(), fp32.AtPeak().Total()) << row.model;
    EXPECT_GE(answers.AtPeak().Total(), 2 * answers.parameters) << row.model;
    EXPECT_LT(answers.AtPeak().Total(), bf16.AtPeak().Total()) << row.model;
  }
}

// Published with a head of its own; transformers 5 ties T5's always, so it is not in the referee's table.
TEST(Families, FlanT5IsUntiedAsPublished) {
  const Model model = ModelFrom(
      R"({"model_type":"t5","architectures":["T5ForConditionalGeneration"],"d_model":768,"d_ff":2048,"num_layers":12,
          "num_heads":12,"d_kv":64,"vocab_size":32128,"feed_forward_proj":"gated-gelu","tie_word_embeddings":false})");
  EXPECT_EQ(EstimateOf(model, {.sequence = 16}).parameters, 247'577'856u);
}

TEST(Families, UnknownOnesAreTakenAsADecoderWithAWideBand) {
  std::string json = kSmallLlama;
  json.replace(json.find("llama"), 5, "xyzzy");
  const Model model = ModelFrom(json);
  EXPECT_EQ(model.family, nullptr);
  const Estimate unknown = EstimateOf(model, {});
  const Estimate known = EstimateOf(ModelFrom(kSmallLlama), {});
  EXPECT_EQ(unknown.parameters, known.parameters);
  EXPECT_GT(unknown.used.high - unknown.used.low, 2 * (known.used.high - known.used.low));
  ASSERT_FALSE(unknown.notes.empty());
  EXPECT_THAT(unknown.notes.front(), HasSubstr("not known"));
}

TEST(Families, OnesThatAreNothingLikeADecoderAreRefused) {
  EXPECT_THAT(
      ErrorOf(R"({"model_type":"resnet","depths":[3,4,6,3]})"),
      testing::AllOf(HasSubstr("'resnet' is not one that is known"), HasSubstr("field 'hidden_size'")));
  EXPECT_THAT(ErrorOf("{}"), HasSubstr("field 'hidden_size'"));
}

TEST(Families, ATextModelInsideIsCountedAlone) {
  const std::string outer = std::string(R"({"model_type":"llava","text_config":)") + kSmallLlama + "}";
  const Model model = ModelFrom(outer);
  EXPECT_EQ(EstimateOf(model, {}).parameters, EstimateOf(ModelFrom(kSmallLlama), {}).parameters);
  EXPECT_THAT(model.note, HasSubstr("only the text model inside of 'llava'"));
}

TEST(Families, HeadsAreReadFromTheArchitecture) {
  const std::string base =
      R"({"model_type":"bert","hidden_size":128,"num_hidden_layers":2,"num_attention_heads":2,
                               "intermediate_size":512,"vocab_size":30522,"architectures":[")";
  const auto count = [&](const std::string& name) {
    return EstimateOf(ModelFrom(base + name + "\"]}"), {.sequence = 16}).parameters;
  };
  const uint64_t body = count("BertModel");
  EXPECT_EQ(count("BertForSequenceClassification"), body + 2 * 128 + 2);
  EXPECT_EQ(count("BertForTokenClassification"), body - (128 * 128 + 128) + 2 * 128 + 2);
  EXPECT_EQ(count("BertForMaskedLM"), body + 2 * 128 + 30522);
}

TEST(Sizes, AreTheModelsTheyName) {
  for (const auto& [size, count] : std::vector<std::pair<const char*, uint64_t>>{{"0.5b", 494'032'768},
                                                                                 {"1B", 1'235'814'400},
                                                                                 {"1.5b", 1'543'714'304},
                                                                                 {"3b", 3'212'749'824},
                                                                                 {"7b", 6'738'415'616},
                                                                                 {"8b", 8'030'261'248},
                                                                                 {"13b", 13'015'864'320},
                                                                                 {"14b", 14'770'033'664},
                                                                                 {"32b", 32'763'876'352},
                                                                                 {"70b", 70'553'706'496},
                                                                                 {"72b", 72'706'203'648},
                                                                                 {"405b", 405'853'388'800}}) {
    EXPECT_EQ(EstimateOf(SizedModel(size), {.sequence = 16}).parameters, count) << size;
  }
  EXPECT_EQ(Sizes().size(), 12u) << "a size has no count";
  EXPECT_EQ(SizedModel("6.7b").name, "Llama-2-7B");
}

TEST(Sizes, FarFromAnyKnownModelAreRefused) {
  for (const char* size : {"1000b", "10m", "160b"}) {
    const trace::Result<Model> model = ModelOfSize(size);
    ASSERT_FALSE(model.ok()) << size;
    EXPECT_THAT(model.error().Sentence(), HasSubstr("405b"));
  }
  for (const char* text : {"b", "7", "7bb", "-7b", "nanb", "infb", "llama", "1e99b"})
    EXPECT_FALSE(IsSize(text)) << text;
}

}  // namespace
}  // namespace vramtrace::estimate
