#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "preload/recorder/record/mask.h"

namespace vramtrace::record {
namespace {

std::vector<std::string> Masked(const std::vector<std::string>& arguments) {
  ArgumentMask mask;
  std::vector<std::string> result;
  for (const std::string& argument : arguments) {
    char room[512];
    result.emplace_back(mask.Apply(argument, room, sizeof(room)));
  }
  return result;
}

using Arguments = std::vector<std::string>;

TEST(ArgumentMask, HidesTheValuesOfNamesThatSaySecret) {
  EXPECT_EQ(Masked({"train.py", "--token", "abc", "--lr", "3"}),
            (Arguments{"train.py", "--token", "***", "--lr", "3"}));
  EXPECT_EQ(Masked({"--api-key=abc"}), Arguments{"--api-key=***"});
  EXPECT_EQ(Masked({"--wandb_api_key=abc"}), Arguments{"--wandb_api_key=***"});
  EXPECT_EQ(Masked({"--hubToken", "abc"}), (Arguments{"--hubToken", "***"}));
  EXPECT_EQ(Masked({"--PASSWORD", "-starts-with-a-dash"}), (Arguments{"--PASSWORD", "***"}));
  EXPECT_EQ(Masked({"trainer.hub_token=abc"}), Arguments{"trainer.hub_token=***"});
  EXPECT_EQ(Masked({"-token", "abc", "abc"}), (Arguments{"-token", "***", "abc"}));
}

TEST(ArgumentMask, AnOptionBehindASecretsNameIsNoSecret) {
  EXPECT_EQ(Masked({"--use-auth-token", "--lr", "3"}), (Arguments{"--use-auth-token", "--lr", "3"}));
  EXPECT_EQ(Masked({"--use-auth-token", "--key=x"}), (Arguments{"--use-auth-token", "--key=***"}));
}

TEST(ArgumentMask, KeepsWhatOnlySoundsLikeIt) {
  const Arguments harmless = {"--tokenizer",  "gpt2",      "--max-tokens", "512",
                              "--num_keys=8", "--monkey",  "see",          "keyboard.txt",
                              "a=b",          "--batch=8", "-m",           "torch.distributed.run"};
  EXPECT_EQ(Masked(harmless), harmless);
}

TEST(ArgumentMask, HidesValuesThatShowThemselves) {
  EXPECT_EQ(Masked({"hf_abcdefghijklmnopqrstuvwxyz"}), Arguments{"***"});
  EXPECT_EQ(Masked({"--x=sk-abcdefghijklmnopqrstuvwxyz"}), Arguments{"--x=***"});
  EXPECT_EQ(Masked({"AKIAABCDEFGHIJKLMNOP"}), Arguments{"***"});
  EXPECT_EQ(Masked({"hf_model"}), Arguments{"hf_model"});
  EXPECT_EQ(Masked({"https://me:pass@host/path?q=a@b"}), Arguments{"https://***@host/path?q=a@b"});
  EXPECT_EQ(Masked({"https://host/path@2"}), Arguments{"https://host/path@2"});
}

TEST(MaskVariable, HidesSecretsOfTheEnvironment) {
  char room[512];
  EXPECT_EQ(MaskVariable("PYTORCH_HUB_TOKEN=abc", room, sizeof(room)), "PYTORCH_HUB_TOKEN=***");
  EXPECT_EQ(MaskVariable("CUDA_VISIBLE_DEVICES=0", room, sizeof(room)), "CUDA_VISIBLE_DEVICES=0");
  EXPECT_EQ(MaskVariable("NCCL_X=", room, sizeof(room)), "NCCL_X=");
}

TEST(MaskVariable, AValueLongerThanTheRoomIsHiddenAllTheSame) {
  char room[8];
  const std::string_view masked = MaskVariable("CUDA_TOKEN=abcdefghij", room, sizeof(room));
  EXPECT_EQ(masked.find("abc"), std::string_view::npos);
}

}  // namespace
}  // namespace vramtrace::record
