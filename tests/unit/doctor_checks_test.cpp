// What no simulated card can pretend: versions, containers, disks, hostile probes. The rest of the rows is
// played in tests/preload/test_cli_doctor.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "analyzer/doctor/checks.h"
#include "analyzer/doctor/collect.h"
#include "analyzer/doctor/text.h"

namespace vramtrace::doctor {
namespace {

using ::testing::HasSubstr;

Facts FactsOf(int major, int minor) {
  Facts facts;
  CardFacts card;
  card.cuda.name = "NVIDIA GeForce RTX 4090";
  card.cuda.total = 24207ULL << 20;
  card.cuda.free = 23700ULL << 20;
  card.cuda.multiprocessors = 128;
  card.cuda.compute_major = major;
  card.cuda.compute_minor = minor;
  facts.cards.push_back(card);
  facts.software.driver = "580.1";
  facts.software.driver_cuda = 13000;
  facts.software.torch = "2.15.0";
  facts.software.torch_cuda = "13.2";
  facts.software.architectures = {"sm_80", "sm_90", "compute_90"};
  return facts;
}

TEST(DoctorChecks, RowsAreDistinctAndSayWhatTheyCompare) {
  std::set<std::string_view> keys;
  for (const Check& check : Checks()) {
    EXPECT_TRUE(keys.insert(check.key).second) << check.key;
    EXPECT_FALSE(check.what.empty()) << check.key;
  }
  EXPECT_EQ(Checks().size(), 22u);
}

TEST(DoctorChecks, NothingKnownIsNotCheckedAndSaysWhy) {
  Facts nothing;
  nothing.software.why = "no CUDA";
  for (const Judged& row : JudgeAll(nothing)) {
    EXPECT_EQ(row.verdict.status, Status::kNotChecked) << row.check->key;
    EXPECT_FALSE(row.verdict.found.empty()) << row.check->key;
  }
  EXPECT_EQ(Count(JudgeAll(nothing)).not_checked, Checks().size());
}

TEST(DoctorChecks, VersionsMustFitOneAnother) {
  EXPECT_EQ(CheckVersions(FactsOf(8, 9), nullptr).status, Status::kGood) << "sm_80 code runs on 8.9";
  EXPECT_EQ(CheckVersions(FactsOf(10, 0), nullptr).status, Status::kGood) << "compute_90 is compiled for it";
  const Verdict old = CheckVersions(FactsOf(7, 0), nullptr);
  EXPECT_EQ(old.status, Status::kOff);
  EXPECT_THAT(old.found, HasSubstr("compute capability 7.0"));
  Facts driver = FactsOf(8, 9);
  driver.software.driver_cuda = 12080;
  EXPECT_THAT(CheckVersions(driver, nullptr).cause, HasSubstr("driver is too old"));
  Facts cpu = FactsOf(8, 9);
  cpu.software.torch_cuda.clear();
  EXPECT_THAT(CheckVersions(cpu, nullptr).cause, HasSubstr("built for the CPU"));
}

TEST(DoctorChecks, ContainersAreNamed) {
  Facts facts = FactsOf(8, 9);
  facts.host.cores = 2;
  facts.host.cores_machine = 64;
  EXPECT_THAT(CheckContainer(facts, nullptr).cause, HasSubstr("four cores"));
  facts.host.cores = 16;
  EXPECT_EQ(CheckContainer(facts, nullptr).status, Status::kGood);
  facts.host.processes_limit = 100;
  EXPECT_EQ(CheckContainer(facts, nullptr).status, Status::kOff);
  facts.host.shared_total = facts.host.shared_free = 64 << 20;
  facts.host.container = true;
  EXPECT_THAT(CheckSharedMemory(facts, nullptr).remedy, HasSubstr("--shm-size"));
  facts.host.memory_total = 64ULL << 30;
  facts.host.memory_free = 4ULL << 30;
  EXPECT_EQ(CheckHostMemory(facts, nullptr).status, Status::kOff);
}

TEST(DoctorChecks, DisksAndNetworks) {
  Facts facts;
  facts.host.disk.folder = "/data";
  facts.host.disk.sequential = 0.1e9;
  facts.host.disk.random = 100 * 65536.0;
  EXPECT_EQ(CheckSequential(facts, nullptr).status, Status::kOff);
  EXPECT_THAT(CheckRandom(facts, nullptr).found, HasSubstr("100 reads a second"));
  facts.host.disk.sequential = 3e9;
  EXPECT_EQ(CheckSequential(facts, nullptr).status, Status::kGood);
  facts.host.network = {{"ib0", "InfiniBand", 200, true}, {"eth0", "Ethernet", std::nullopt, false}};
  EXPECT_EQ(CheckNetwork(facts, nullptr).found,
            "InfiniBand ib0 200 Gbit/s, Ethernet eth0 of unknown speed (down)");
}

TEST(DoctorChecks, ScalingIsThreeOfFour) {
  Facts facts = FactsOf(8, 9);
  facts.cards.resize(4, facts.cards[0]);
  EXPECT_EQ(CheckScaling(facts, nullptr).status, Status::kNotChecked);
  facts.cards[0].rates[Rate::kScaling] = {3.1, ""};
  EXPECT_EQ(CheckScaling(facts, nullptr).status, Status::kGood);
  facts.cards[0].rates[Rate::kScaling] = {2.4, ""};
  EXPECT_THAT(CheckScaling(facts, nullptr).found, HasSubstr("4 cards do the work of 2.40"));
  EXPECT_EQ(CheckScaling(facts, nullptr).status, Status::kOff);
  facts.cards[0].rates[Rate::kAllReduce] = {2e10, ""};
  EXPECT_EQ(CheckAllReduce(facts, nullptr).status, Status::kGood);
  facts.cards[0].rates[Rate::kResNet50] = {1234, ""};
  EXPECT_THAT(CheckResNet(facts, &facts.cards[0]).found, HasSubstr("1234.0 images/s"));
}

TEST(DoctorChecks, AMemoryOfItsOwnKindIsTheModifiedBoard) {
  Facts facts = FactsOf(8, 9);
  facts.cards[0].cuda.total = 48508ULL << 20;
  EXPECT_EQ(Expected(facts.cards[0])->id, "rtx4090-48");
  facts.cards[0].sold_as = "rtx4090";
  EXPECT_THAT(CheckMemory(facts, &facts.cards[0]).cause, HasSubstr("more memory than its name"));
  facts.cards[0].cuda.name = "Voodoo 2";
  facts.cards[0].sold_as.clear();
  EXPECT_THAT(CheckName(facts, &facts.cards[0]).found, HasSubstr("does not know Voodoo 2"));
}

TEST(DoctorProbe, LinesThatAreNoneAreLeftOut) {
  Facts facts;
  const auto nothing = [](const std::string&) {};
  for (const char* line : {"", "hello", "[]", "3", "{", "{\"what\": 3}", "{\"what\": \"rate\"}",
                           "{\"what\": \"rate\", \"index\": 99999999999, \"kind\": \"fp32\", \"value\": 1}",
                           "{\"what\": \"rate\", \"index\": -1, \"kind\": \"fp32\", \"value\": 1}",
                           "{\"what\": \"card\", \"index\": \"x\", \"total\": \"many\"}",
                           "{\"what\": \"runtime\", \"architectures\": [3, null]}"}) {
    TakeProbeLine(line, &facts, nothing);
  }
  EXPECT_LE(facts.cards.size(), 1u);
  TakeProbeLine("{\"what\": \"rate\", \"index\": 1, \"kind\": \"bf16\", \"value\": 1.5e14}", &facts, nothing);
  ASSERT_EQ(facts.cards.size(), 2u);
  EXPECT_EQ(facts.cards[1].Get(Rate::kBf16).value, 1.5e14);
  EXPECT_EQ(RateText(Rate::kBf16, 1.5e14), "150.0 TFLOPS");
}

TEST(DoctorHost, ReadsThisMachine) {
  const HostFacts host = ReadHost();
  EXPECT_GT(host.cores, 0);
  ASSERT_TRUE(host.memory_free && host.memory_total);
  EXPECT_LE(*host.memory_free, *host.memory_total);
}

}  // namespace
}  // namespace vramtrace::doctor
