// A config.json may come from anybody.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "analyzer/estimate/config.h"
#include "tests/unit/estimate_files.h"

namespace vramtrace::estimate {
namespace {

using testing::HasSubstr;

std::string With(const std::string& field, const std::string& value) {
  auto json = nlohmann::json::parse(kSmallLlama);
  json[field] = nlohmann::json::parse(value);
  return json.dump();
}

TEST(HostileConfig, NamesFileAndField) {
  const std::pair<const char*, const char*> wrong[] = {
      {"hidden_size", "-1024"},
      {"hidden_size", "0"},
      {"hidden_size", "1e30"},
      {"hidden_size", "\"1024\""},
      {"hidden_size", "10.5"},
      {"hidden_size", "[1024]"},
      {"num_hidden_layers", "18446744073709551615"},
      {"num_hidden_layers", "-9223372036854775808"},
      {"num_hidden_layers", "1000000000"},
      {"num_attention_heads", "0"},
      {"vocab_size", "99999999999"},
      {"intermediate_size", "-2"},
      {"num_key_value_heads", "17"},
      {"head_dim", "0"},
      {"tie_word_embeddings", "1"},
      {"hidden_act", "\"exec\""},
  };
  for (const auto& [field, value] : wrong) {
    const std::string error = ErrorOf(With(field, value));
    EXPECT_THAT(error, HasSubstr(std::string("config.json: field '") + field + "'")) << value;
  }
}

TEST(HostileConfig, WholeNumbersMayBeWrittenAsFloats) {
  EXPECT_EQ(ErrorOf(With("hidden_size", "1024.0")), "");
  EXPECT_EQ(ErrorOf(With("head_dim", "null")), "") << "null is missing";
}

TEST(HostileConfig, ThatIsNoJsonNamesTheOffset) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("config.json, byte 0"));
  EXPECT_THAT(ErrorOf("{\"model_type\": }"), HasSubstr("byte 15"));
  EXPECT_THAT(ErrorOf("[1]"), HasSubstr("a JSON object was expected"));
  EXPECT_THAT(ErrorOf("{\"hidden_size\": 1e999}"), HasSubstr("config.json"));
  EXPECT_THAT(ErrorOf("{\"a\": \"\xff\xfe\"}"), HasSubstr("not JSON"));
}

TEST(HostileConfig, IsNotFollowedIntoTheDeep) {
  const size_t levels = 2'000'000;
  EXPECT_THAT(ErrorOf("{\"a\":" + std::string(levels, '[') + std::string(levels, ']') + "}"),
              HasSubstr("nested"));
  EXPECT_THAT(ErrorOf(std::string((16u << 20) + 1, ' ')), HasSubstr("larger than 16 MiB"));
}

TEST(HostileConfig, NamesAreShownWithoutTheirControlCharacters) {
  auto json = nlohmann::json::parse(kSmallLlama);
  json["model_type"] = "\x1b[31mred";
  json["architectures"] = {std::string(500, 'x') + "\n"};
  json.erase("hidden_size");
  const std::string error = ErrorOf(json.dump());
  EXPECT_EQ(error.find('\x1b'), std::string::npos);
  EXPECT_THAT(error, HasSubstr("?[31mred"));
}

TEST(HostileConfig, LargeSizesTogetherAreRefusedNotWrapped) {
  auto json = nlohmann::json::parse(kSmallLlama);
  json["hidden_size"] = 1 << 20;
  json["intermediate_size"] = 1 << 22;
  json["num_hidden_layers"] = 4096;
  EXPECT_THAT(ErrorOf(json.dump()), HasSubstr("10^15 parameters"));
  Request request;
  request.batch = 1 << 12;
  request.sequence = 1 << 20;
  request.attention = AttentionKind::kEager;
  EXPECT_EQ(CheckRequest(request), "");
  EXPECT_THAT(ErrorOf(kSmallLlama, request), HasSubstr("16 TiB"));
}

TEST(HostileConfig, ExpertsMoreThanThereAre) {
  const std::string error = ErrorOf(
      R"({"model_type":"mixtral","hidden_size":64,"intermediate_size":64,"num_hidden_layers":1,"num_attention_heads":4,
          "vocab_size":100,"num_local_experts":4,"num_experts_per_tok":5})");
  EXPECT_THAT(error, HasSubstr("field 'num_experts_per_tok': 5 was found, a whole number from 1 to 4"));
}

TEST(ConfigFile, IsReadFromAFolderToo) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "vramtrace_estimate_config";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "config.json") << kSmallLlama;
  const trace::Result<Config> config = Config::Load(folder.string());
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config.value().ModelType(), "llama");
  EXPECT_THAT(Config::Load((folder / "none").string()).error().Sentence(), HasSubstr("cannot be read"));
}

TEST(HostileRequest, IsRefusedWithTheOption) {
  const auto says = [](void (*change)(Request&)) {
    Request request;
    change(request);
    return CheckRequest(request);
  };
  EXPECT_THAT(says([](Request& r) { r.batch = 0; }), HasSubstr("--batch"));
  EXPECT_THAT(says([](Request& r) { r.sequence = uint64_t{1} << 40; }), HasSubstr("--seq"));
  EXPECT_THAT(says([](Request& r) { r.batch = r.sequence = 1 << 20; }), HasSubstr("4 billion"));
  EXPECT_THAT(says([](Request& r) { r.optimizer = "adamw-3bit"; }), HasSubstr("adamw-8bit"));
  EXPECT_THAT(says([](Request& r) { r.targets = "none"; }), HasSubstr("--targets"));
  EXPECT_THAT(says([](Request& r) { r.tensor_parallel = 0; }), HasSubstr("--tp"));
  EXPECT_THAT(says([](Request& r) { r.chunked_loss = r.fused_loss = true; }), HasSubstr("exclude"));
  EXPECT_THAT(says([](Request& r) { r.layers_per_checkpoint = -3; }), HasSubstr("--checkpoint-every"));
}

}  // namespace
}  // namespace vramtrace::estimate
