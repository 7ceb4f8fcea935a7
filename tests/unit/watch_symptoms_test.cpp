// Every row of symptoms.def, played by the simulator and a trace: found, and not found in its near miss.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "analyzer/watch/symptoms.h"
#include "tests/unit/watch_fixture.h"

namespace vramtrace::watch {

std::string UuidOfCard(int index) {
  return fmt::format("GPU-7672616d-7472-6163-652d-73696d0000{:02x}", index);
}

void WatchTest::SetUp() {
  FileTest::SetUp();
  // The simulator reads its options once and the scenario whenever it changes: one file for all tests.
  static const std::string file =
      (std::filesystem::temp_directory_path() / fmt::format("vramtrace-watch-{}.txt", ::getpid())).string();
  ::setenv("VRAMTRACE_SIM_SCENARIO", file.c_str(), 1);
  ::setenv("VRAMTRACE_SIM_COUNT", "2", 1);
  WriteScenario("");
  // Kept: a device that is loaded anew reserves its address space anew.
  static void* const kept = ::dlopen(VRAMTRACE_SIMULATOR_FOLDER "/libnvidia-ml.so.1", RTLD_NOW);
  ASSERT_NE(kept, nullptr);
}

void WatchTest::WriteScenario(const std::string& text) {
  static int version = 0;  // the size tells the change where the clock is too coarse
  std::ofstream(std::getenv("VRAMTRACE_SIM_SCENARIO"), std::ios::trunc)
      << text << "\n# " << std::string(static_cast<size_t>(++version), '.') << "\n";
}

std::unique_ptr<nvml::Library> WatchTest::OpenNvml(std::string* why) {
  return nvml::Library::Open(why, VRAMTRACE_SIMULATOR_FOLDER "/libnvidia-ml.so.1");
}

std::string WatchTest::PlayedTrace(const Played& played) {
  testing::TraceBuilder builder;
  v1::Process process;
  process.set_pid(4711);
  process.set_simulated(true);
  process.set_world_size(played.world_size);
  builder.AddProcess(process);
  v1::Device device;
  device.set_total_bytes(kCardBytes);
  device.set_uuid(UuidOfCard(0));
  builder.AddDevice(device);
  uint64_t address = testing::TraceBuilder::kBaseAddress;
  for (int number = 0; number < played.steps; ++number) {
    const PlayedStep step = played.step(number);
    if (!played.loader.empty()) {
      builder.Phase(number == 0 ? "data " + played.loader : std::string("data"), false);
      builder.Wait(step.data_ms * kMillisecond);
      builder.Phase("data", true);
    }
    builder.Input("images", address, step.input_bytes, {step.batch, 3, 224, 224},
                  static_cast<uint64_t>(number));
    for (int i = 0; i < step.blocks; ++i) {
      const testing::BlockArguments block{.address = address += 2 * step.block_bytes,
                                          .bytes = step.block_bytes};
      builder.Allocate(block);
      builder.Free(block);
    }
    for (int i = 0; i < step.retries; ++i) builder.DriverAllocate(0, kMebibyte, "libc10_cuda.so", 2);
    if (step.allocator_ms > 0) {
      v1::Packet packet;
      packet.mutable_driver_allocate()->set_bytes(kMebibyte);
      packet.mutable_driver_allocate()->set_duration_ns(step.allocator_ms * kMillisecond);
      builder.Add(std::move(packet), false);
    }
    builder.Wait(step.work_ms * kMillisecond);
    builder.Step(static_cast<uint64_t>(number), true);
    builder.Query(kCardBytes - played.used, kCardBytes, v1::MemoryQuery::REASON_STEP);
  }
  return Write(builder.Bytes());
}

Evidence WatchTest::Play(const Played& played) {
  WriteScenario(played.scenario);
  std::string why;
  auto library = OpenNvml(&why);
  Observer observer;
  TraceFacts facts;
  trace::TraceTail tail(PlayedTrace(played));
  EXPECT_TRUE(tail.Poll([&](const trace::Event& event) { facts.Add(event); }).ok());
  Session session(std::move(library), why, Plan(), Given{played.one_card_step});
  session.Follow(tail.path());
  for (size_t i = 0; i < kLeastSamples; ++i) (void)session.Sample(::getpid(), {});
  Evidence evidence = session.Finish().evidence;
  evidence.host = played.host;
  evidence.host_looks = kLeastSamples;
  evidence.cores = 8;
  return evidence;
}

namespace {

using ::testing::HasSubstr;

struct Case {
  Played found;
  Confidence confidence;
  std::string says;
  Played missed;  // looks like it and is not
};

PlayedStep Steady(uint64_t data_ms, uint64_t work_ms) { return {.data_ms = data_ms, .work_ms = work_ms}; }

Played With(std::string scenario, std::function<PlayedStep(int)> step, Rates host = {}) {
  Played played;
  played.scenario = std::move(scenario);
  played.step = std::move(step);
  played.host = host;
  return played;
}

const std::map<std::string, Case>& Cases() {
  static const auto* cases = [] {
    auto* made = new std::map<std::string, Case>;
    const auto waiting = [](int) { return Steady(300, 100); };
    const auto working = [](int) { return Steady(1, 100); };

    Played full = With("utilization = 20", waiting);
    full.used = kCardBytes / 100 * 96;
    Played busy = full;
    busy.scenario = "utilization = 95";
    (*made)["full_but_idle"] = {full, Confidence::kHigh, "It is waiting for data", busy};

    (*made)["data_loader"] = {With("utilization = 22", waiting), Confidence::kHigh, "75 % of a step",
                              With("utilization = 22", working)};

    Played alone = With("utilization = 22", waiting, {.main_busy = 1});
    alone.loader = "workers=0 pinned=1 batch=32";
    (*made)["few_workers"] = {alone, Confidence::kHigh, "num_workers is 0",
                              With("utilization = 22", waiting, {.workers = 4, .workers_busy = 0.1})};

    (*made)["slow_disk"] = {
        With("utilization = 22", waiting, {.workers = 4, .workers_blocked = 0.8, .read_bytes = 3e7}),
        Confidence::kHigh, "blocked by a device in 80 %",
        With("utilization = 22", waiting, {.workers = 4, .workers_busy = 0.95, .workers_blocked = 0.05})};

    const auto large = [](int) { return PlayedStep{.work_ms = 100, .input_bytes = 400 * kMebibyte}; };
    Played pageable = With("utilization = 60", large);
    pageable.loader = "workers=4 pinned=0 batch=32";
    Played pinned = With("utilization = 60", large);
    (*made)["pageable_copies"] = {pageable, Confidence::kMedium, "not pinned", pinned};

    const auto batches = [](uint64_t small_ms, uint64_t large_ms) {
      return [=](int step) {
        return PlayedStep{.work_ms = step % 2 == 0 ? small_ms : large_ms, .batch = step % 2 == 0 ? 8 : 16};
      };
    };
    (*made)["small_batch"] = {With("utilization = 40", batches(100, 105)), Confidence::kHigh,
                              "from batch 8 to 16", With("utilization = 40", batches(100, 195))};

    Played thrashing =
        With("utilization = 50", [](int) { return PlayedStep{.retries = 1, .allocator_ms = 30}; });
    thrashing.used = kCardBytes / 100 * 98;
    Played once = With("utilization = 50", [](int step) { return PlayedStep{.retries = step == 0 ? 3 : 0}; });
    once.used = thrashing.used;
    (*made)["allocator"] = {thrashing, Confidence::kHigh, "8 retries in 8 steps", once};

    const auto tiny = [](int) { return PlayedStep{.work_ms = 20, .blocks = 1000, .block_bytes = 4096}; };
    (*made)["launch_bound"] = {
        With("utilization = 45\nmemory_utilization = 8\npower = 110\npower_limit = 450", tiny,
             {.main_busy = 0.99}),
        Confidence::kHigh, "1000 tensors a step", With("utilization = 99", tiny, {.main_busy = 0.99})};

    (*made)["throttled"] = {With("throttle = hw_thermal\ntemperature = 91\nsm_clock = 1200", working),
                            Confidence::kHigh, "lowered by heat", With("throttle = sw_power", working)};

    (*made)["page_faults"] = {With("", working, {.main_blocked = 0.6, .major_faults = 400}),
                              Confidence::kHigh, "400 major",
                              With("", working, {.major_faults = 2, .minor_faults = 5000})};

    Played scaled = With("utilization = 90", working);
    scaled.world_size = 4;
    scaled.one_card_step = 0.095;
    Played slower = scaled;
    slower.one_card_step = 0.04;
    (*made)["not_scaling"] = {slower, Confidence::kHigh, "4 cards do the work of", scaled};
    return made;
  }();
  return *cases;
}

class WatchSymptoms : public WatchTest {
 protected:
  Finding Decide(const std::string& key, const Played& played) {
    const Evidence evidence = Play(played);
    for (const Decided& row : DecideAll(evidence)) {
      if (row.symptom->key == key) return row.finding;
    }
    ADD_FAILURE() << key;
    return {};
  }
};

TEST_F(WatchSymptoms, EachHasACase) {
  for (const Symptom& symptom : Symptoms())
    EXPECT_TRUE(Cases().contains(std::string(symptom.key))) << symptom.key;
  EXPECT_EQ(Symptoms().size(), Cases().size());
}

TEST_F(WatchSymptoms, EachIsFoundWhereItIsPlayed) {
  for (const auto& [key, played] : Cases()) {
    const Finding finding = Decide(key, played.found);
    EXPECT_EQ(finding.state, State::kFound) << key << ": " << finding.sentence;
    EXPECT_EQ(finding.confidence, played.confidence) << key << ": " << finding.sentence;
    EXPECT_THAT(finding.sentence, HasSubstr(played.says)) << key;
    EXPECT_FALSE(finding.advice.empty()) << key;
  }
}

TEST_F(WatchSymptoms, NoneIsFoundInItsNearMiss) {
  for (const auto& [key, played] : Cases()) {
    const Finding finding = Decide(key, played.missed);
    EXPECT_EQ(finding.state, State::kAbsent) << key << ": " << finding.sentence;
  }
}

TEST_F(WatchSymptoms, NoneIsFoundInAHealthyRun) {
  Played healthy = With("utilization = 97\nmemory_utilization = 60\npower = 430\nthrottle = sw_power",
                        [](int) { return Steady(1, 100); }, {.main_busy = 0.3});
  for (const Decided& row : DecideAll(Play(healthy))) {
    EXPECT_NE(row.finding.state, State::kFound) << row.symptom->key << ": " << row.finding.sentence;
  }
}

TEST_F(WatchSymptoms, EachSaysWhatItWouldNeed) {
  Evidence nothing;
  nothing.why_no_nvml = "no driver";
  for (const Decided& row : DecideAll(nothing)) {
    if (row.symptom->key == "not_scaling") continue;  // one card: nothing to tell
    EXPECT_EQ(row.finding.state, State::kUnknown) << row.symptom->key;
    ASSERT_FALSE(row.finding.needs.empty()) << row.symptom->key;
    EXPECT_FALSE(row.finding.needs[0].empty()) << row.symptom->key;
  }
}

TEST_F(WatchSymptoms, ScalingNeedsTheTimeOnOneCard) {
  Played several = With("utilization = 90", [](int) { return Steady(1, 100); });
  several.world_size = 4;
  const Finding finding = Decide("not_scaling", several);
  EXPECT_EQ(finding.state, State::kUnknown);
  EXPECT_THAT(finding.needs.at(0), HasSubstr("--one-card-step"));
}

TEST_F(WatchSymptoms, AThrottledCardWithoutNvmlIsNotKnown) {
  const Finding finding =
      Decide("throttled", With("nvml = no_permission", [](int) { return Steady(1, 100); }));
  EXPECT_EQ(finding.state, State::kUnknown);
  EXPECT_THAT(finding.needs.at(0), HasSubstr("Insufficient Permissions"));
}

TEST_F(WatchSymptoms, APowerCapCountsWhereItCostsClocks) {
  const auto working = [](int) { return Steady(1, 100); };
  EXPECT_EQ(Decide("throttled", With("throttle = sw_power\nsm_clock = 1500", working)).state, State::kFound);
}

std::string AnswerTo(const Evidence& evidence, std::string_view claim) {
  for (const RuleOfThumb& rule : RulesOfThumb(evidence)) {
    if (rule.claim.find(claim) != std::string::npos) return rule.answer;
  }
  return "";
}

TEST_F(WatchSymptoms, RulesOfThumbAreAnsweredWithTheirConditions) {
  Played low = With("utilization = 22", [](int) { return Steady(300, 100); });
  const Evidence slow = Play(low);
  EXPECT_THAT(AnswerTo(slow, "under 70 %"), HasSubstr("cannot tell"));
  EXPECT_THAT(AnswerTo(slow, "low utilisation"), HasSubstr("covers 96 % of the idle time"));
  EXPECT_EQ(AnswerTo(slow, "at 100 %"), "");
  low.used = kCardBytes / 100 * 97;
  EXPECT_THAT(AnswerTo(Play(low), "at 100 %"), HasSubstr("no request was retried"));
  Played two = With("", [](int step) {
    return PlayedStep{.work_ms = step % 2 == 0 ? 100u : 200u, .batch = step % 2 == 0 ? 8 : 16};
  });
  EXPECT_THAT(AnswerTo(Play(two), "under 70 %"), HasSubstr("batch 16 took 100 %"));
}

}  // namespace
}  // namespace vramtrace::watch
