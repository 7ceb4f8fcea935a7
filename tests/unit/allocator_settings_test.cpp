#include <algorithm>
#include <set>

#include "tests/unit/allocator_fixture.h"

namespace vramtrace::allocator {
namespace {

// One value of each option, and whether it changes the device's memory.
struct OptionCase {
  std::string_view name;
  std::string_view value;
  bool changes_memory;
};

constexpr OptionCase kOptionCases[] = {
    {"backend", "cudaMallocAsync", true},
    {"max_split_size_mb", "128", true},
    {"garbage_collection_threshold", "0.6", true},
    {"roundup_power2_divisions", "[256:1,512:2,>:4]", true},
    {"expandable_segments", "True", true},
    {"release_lock_on_cudamalloc", "True", false},
    {"pinned_use_cuda_host_register", "True", false},
    {"pinned_num_register_threads", "8", false},
    {"pinned_use_background_threads", "True", false},
    {"max_non_split_rounding_mb", "40", true},
    {"graph_capture_record_stream_reuse", "True", false},
    {"per_process_memory_fraction", "0.5", true},
    {"pinned_reserve_segment_size_mb", "64", false},
    {"large_segment_size_mb", "32", true},
    {"throw_on_cudamalloc_oom", "True", true},
    {"pinned_free_catch_all", "True", false},
    {"pinned_max_round_threshold_mb", "64", false},
    {"pinned_max_cached_size_mb", "64", false},
    {"expandable_segments_reserve", "0.5", false},
    {"expandable_segments_reserve_by_class", "[a:0.5,b:40G]", false},
};

TEST(Settings, EveryOptionIsReadAloneAndWithTheOthers) {
  std::vector<std::string_view> names;
  std::string all;
  for (const OptionCase& option : kOptionCases) {
    names.push_back(option.name);
    const std::string text = std::string(option.name) + ":" + std::string(option.value);
    Settings settings = Parse(text);
    EXPECT_EQ(settings.without_effect.empty(), option.changes_memory) << option.name;
    settings.without_effect.clear();
    EXPECT_EQ(settings != Settings{}, option.changes_memory) << option.name;
    all += (all.empty() ? "" : ", ") + text;
  }
  EXPECT_EQ(names, OptionNames(Rules())) << "an option without a case here";
  const Settings settings = Parse(all);
  EXPECT_EQ(settings.max_split, 128 * kMiB);
  EXPECT_EQ(settings.garbage_collection_threshold, 0.6);
  EXPECT_EQ(settings.power_of_two_divisions[9], 2U);
  EXPECT_TRUE(settings.expandable_segments);
  EXPECT_FALSE(settings.native_backend);
  EXPECT_EQ(settings.max_non_split_rounding, 40 * kMiB);
  EXPECT_EQ(settings.large_segment, 32 * kMiB);
  EXPECT_EQ(settings.memory_fraction, 0.5);
  EXPECT_TRUE(settings.reject_above_fraction);
  EXPECT_EQ(settings.without_effect.size(),
            std::ranges::count(kOptionCases, false, &OptionCase::changes_memory));
  EXPECT_EQ(Parse(""), Settings{});
}

TEST(Settings, DivisionsAsOneNumberOrByInterval) {
  EXPECT_EQ(Parse("roundup_power2_divisions:8").power_of_two_divisions[15], 8U);
  const auto newer = Parse("roundup_power2_divisions:[4:2,16:8,>:1]").power_of_two_divisions;
  EXPECT_EQ(newer, (PowerOfTwoDivisions{2, 2, 2, 0, 8, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}));
  const auto older = Parse("roundup_power2_divisions:[4:2,16:8,>:1]", {2, 9}).power_of_two_divisions;
  EXPECT_EQ(older[4], 1U) << "the open interval overwrote the last one";
  EXPECT_EQ(older[3], 0U);
}

TEST(Settings, AnotherParseSetsSomeOptionsBack) {
  const Settings before =
      Parse("max_split_size_mb:128,expandable_segments:True,garbage_collection_threshold:0.6");
  const auto after = std::get<Settings>(ParseSettings("max_non_split_rounding_mb:30", Rules(), before));
  EXPECT_EQ(after.max_split, kUnlimited);
  EXPECT_EQ(after.garbage_collection_threshold, 0);
  EXPECT_TRUE(after.expandable_segments);
}

TEST(Settings, LargeSegmentsAreTheLeastAndTheDefaultOfOthers) {
  EXPECT_EQ(Parse("large_segment_size_mb:32").max_non_split_rounding, 32 * kMiB);
  EXPECT_EQ(Parse("max_non_split_rounding_mb:40,large_segment_size_mb:32").max_non_split_rounding, 40 * kMiB);
  const auto refused = ParseSettings("max_split_size_mb:30,large_segment_size_mb:32", Rules());
  ASSERT_TRUE(std::holds_alternative<SettingsError>(refused));
  EXPECT_EQ(std::get<SettingsError>(refused).expected, "a number of MiB of at least 32");
  for (const PyTorchVersion version : {PyTorchVersion{2, 10}, kNewest}) {
    const Settings before = Parse("max_non_split_rounding_mb:50", version);
    const auto after = std::get<Settings>(ParseSettings("max_split_size_mb:30", Rules(version), before));
    EXPECT_EQ(after.max_non_split_rounding, version.minor == 10 ? 50 * kMiB : 20 * kMiB);
  }
}

TEST(Settings, MistakesNameTheOptionAndWhatWasExpected) {
  const std::pair<const char*, const char*> mistakes[] = {
      {"nonsense:1", "nonsense"},
      {"max_split_size_mb", "max_split_size_mb"},
      {"max_split_size_mb:", "max_split_size_mb"},
      {"max_split_size_mb:5", "max_split_size_mb"},
      {"max_split_size_mb:abc", "max_split_size_mb"},
      {"max_split_size_mb:64 expandable_segments:True", "max_split_size_mb"},
      {"garbage_collection_threshold:1.5", "garbage_collection_threshold"},
      {"expandable_segments:true", "expandable_segments"},
      {"roundup_power2_divisions:3", "roundup_power2_divisions"},
      {"roundup_power2_divisions:[1:2", "roundup_power2_divisions"},
      {"roundup_power2_divisions:[1:2,x:4]", "roundup_power2_divisions"},
      {"roundup_power2_divisions:[1:3]", "roundup_power2_divisions"},
      {"roundup_power2_divisions:[1]", "roundup_power2_divisions"},
      {"backend:magic", "backend"},
      {"per_process_memory_fraction:2", "per_process_memory_fraction"},
  };
  for (const auto& [text, option] : mistakes) {
    const auto parsed = ParseSettings(text, Rules());
    const auto* error = std::get_if<SettingsError>(&parsed);
    ASSERT_NE(error, nullptr) << text;
    EXPECT_EQ(error->option, option) << text;
    EXPECT_FALSE(error->expected.empty()) << text;
  }
}

TEST(Settings, OptionsOfLaterReleasesAreRefused) {
  const auto parsed = ParseSettings("expandable_segments:True", Rules({2, 0}));
  ASSERT_TRUE(std::holds_alternative<SettingsError>(parsed));
  EXPECT_EQ(std::get<SettingsError>(parsed).expected, "PyTorch 2.1 or later, which has this option");
}

TEST(Versions, OneRowEachFrom20) {
  std::set<std::uint16_t> minors;
  for (const VersionRules& rules : AllVersions()) {
    EXPECT_EQ(rules.version.major, 2);
    EXPECT_TRUE(minors.insert(rules.version.minor).second) << rules.version.minor;
    EXPECT_EQ(FindVersion(rules.version), &rules);
  }
  EXPECT_EQ(minors.size(), 16U);
  EXPECT_EQ(FindVersion({1, 13}), nullptr);
  EXPECT_EQ(FindVersion({2, 99}), &AllVersions().back());
  EXPECT_EQ(FindVersion({3, 0}), &AllVersions().back());
}

}  // namespace
}  // namespace vramtrace::allocator
