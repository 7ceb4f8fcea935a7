// Every row of hooked_functions.def: reached by its case in programs/hook_cases.cpp, under the preload, in
// front of libraries that only have public functions. A row without a case fails here.

#include "preload/recorder/hooks/hook_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <set>
#include <sstream>
#include <vector>

#include "tests/preload/recorded.h"
#include "tests/preload/run_program.h"

namespace vramtrace::tests {
namespace {

using hooks::HookRow;
using hooks::Role;

class HookedFunction : public testing::TestWithParam<HookRow> {
 protected:
  // Packets of a driver event whose function is this row's.
  template <typename Has, typename Get>
  std::vector<RecordedPacket> OfThisFunction(const Recorded& trace, Has has, Get get) const {
    std::vector<RecordedPacket> found;
    for (const RecordedPacket& recorded : trace.packets) {
      if ((recorded.packet.*has)() && trace.Text((recorded.packet.*get)().function()) == GetParam().symbol) {
        found.push_back(recorded);
      }
    }
    return found;
  }

  template <typename Has>
  static long Count(const Recorded& trace, Has has) {
    return std::count_if(trace.packets.begin(), trace.packets.end(),
                         [has](const RecordedPacket& recorded) { return (recorded.packet.*has)(); });
  }

  void ExpectEvents(const Recorded& trace) const;
};

void HookedFunction::ExpectEvents(const Recorded& trace) const {
  using v1::Packet;
  switch (GetParam().role) {
    case Role::kAllocate: {
      const auto events = OfThisFunction(trace, &Packet::has_driver_allocate, &Packet::driver_allocate);
      ASSERT_EQ(events.size(), 1U);
      EXPECT_EQ(events[0].packet.driver_allocate().result(), 0U);
      EXPECT_GE(events[0].address, 0x700000000000U);
      if (events[0].packet.driver_allocate().kind() != v1::MEMORY_KIND_IMPORTED) {
        EXPECT_EQ(events[0].packet.driver_allocate().bytes(), 4096U);
      }
      EXPECT_EQ(trace.Text(events[0].packet.driver_allocate().caller()), "hook_cases");
      EXPECT_EQ(Count(trace, &Packet::has_driver_allocate), 1) << "a nested call was recorded too";
      break;
    }
    case Role::kFree: {
      const auto events = OfThisFunction(trace, &Packet::has_driver_free, &Packet::driver_free);
      ASSERT_EQ(events.size(), 1U);
      EXPECT_EQ(events[0].address, 0x700000001000U);
      EXPECT_EQ(Count(trace, &Packet::has_driver_free), 1);
      break;
    }
    case Role::kTrim:  // what was given back, the device tells, once
      EXPECT_EQ(std::count_if(trace.packets.begin(), trace.packets.end(),
                              [](const auto& recorded) {
                                return recorded.packet.has_memory_query() &&
                                       recorded.packet.memory_query().reason() ==
                                           v1::MemoryQuery::REASON_DRIVER_FREE;
                              }),
                1);
      break;
    case Role::kMap:
      EXPECT_EQ(Count(trace, &Packet::has_memory_map) + Count(trace, &Packet::has_memory_unmap), 1);
      break;
    case Role::kAllocateHost: {
      const auto events = OfThisFunction(trace, &Packet::has_host_allocate, &Packet::host_allocate);
      ASSERT_EQ(events.size(), 1U);
      EXPECT_EQ(events[0].packet.host_allocate().bytes(), 4096U);
      break;
    }
    case Role::kFreeHost:
      EXPECT_EQ(OfThisFunction(trace, &Packet::has_host_free, &Packet::host_free).size(), 1U);
      break;
    case Role::kQuery: {
      const auto asked = std::find_if(trace.packets.begin(), trace.packets.end(), [](const auto& recorded) {
        return recorded.packet.has_memory_query() &&
               recorded.packet.memory_query().reason() == v1::MemoryQuery::REASON_PROGRAM;
      });
      ASSERT_NE(asked, trace.packets.end());
      EXPECT_EQ(asked->packet.memory_query().total_bytes(), 1U << 30);
      EXPECT_EQ(asked->packet.memory_query().free_bytes(), (1U << 30) - (3U << 20));
      break;
    }
    case Role::kLookup: {
      // The function that was handed out is hooked: calling it was recorded.
      const auto created =
          std::find_if(trace.packets.begin(), trace.packets.end(), [&](const auto& recorded) {
            return recorded.packet.has_driver_allocate() &&
                   trace.Text(recorded.packet.driver_allocate().function()) == "cuMemCreate";
          });
      ASSERT_NE(created, trace.packets.end());
      EXPECT_EQ(created->packet.driver_allocate().kind(), v1::MEMORY_KIND_PHYSICAL);
      break;
    }
    case Role::kReport: {
      const std::string symbol = GetParam().symbol;
      const bool short_form = symbol == "_ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE";
      const bool out_of_memory = symbol.find("OutOfMemory") != std::string::npos;
      EXPECT_EQ(Count(trace, &Packet::has_block_allocate), out_of_memory || short_form ? 0 : 1);
      EXPECT_EQ(Count(trace, &Packet::has_block_free), out_of_memory || short_form ? 0 : 1);
      EXPECT_EQ(Count(trace, &Packet::has_out_of_memory), out_of_memory ? 1 : 0);
      if (short_form) {
        EXPECT_TRUE(std::any_of(trace.packets.begin(), trace.packets.end(), [&](const auto& recorded) {
          return recorded.packet.has_feature() && !recorded.packet.feature().on() &&
                 trace.Text(recorded.packet.feature().name()) == "block_events";
        }));
      }
      break;
    }
  }
}

TEST_P(HookedFunction, IsRecordedOnceAndForwarded) {
  const ScratchFolder folder;
  const Ended ended =
      RunProgram({VRAMTRACE_HOOK_CASES, GetParam().symbol}, Preloaded(folder.File("t.vtrace")));
  ASSERT_EQ(ended.status, 0) << ended.text;
  EXPECT_EQ(ended.text, "") << "a recorded program says nothing of the recorder";
  const Recorded trace(folder.File("t.vtrace"));
  ASSERT_EQ(trace.error, "");
  ExpectEvents(trace);
}

class FunctionWithAResult : public HookedFunction {};

TEST_P(FunctionWithAResult, IsNoDeviceWithoutARealOne) {
  const ScratchFolder folder;
  const Ended ended =
      RunProgram({VRAMTRACE_NO_DEVICE, GetParam().symbol}, Preloaded(folder.File("t.vtrace")));
  EXPECT_EQ(ended.status, 100) << ended.text;  // cudaErrorNoDevice, CUDA_ERROR_NO_DEVICE
  EXPECT_EQ(folder.CountFiles(), 0U);
}

class DeviceAllocation : public HookedFunction {};

TEST_P(DeviceAllocation, PassesOutOfMemoryOn) {
  const ScratchFolder folder;
  Environment environment = Preloaded(folder.File("t.vtrace"));
  environment["FAKE_CUDA_FAIL"] = GetParam().symbol;
  const Ended ended = RunProgram({VRAMTRACE_HOOK_CASES, GetParam().symbol}, environment);
  EXPECT_EQ(ended.status, 1) << "the case sees the failure";
  const Recorded trace(folder.File("t.vtrace"));
  ASSERT_EQ(trace.error, "");
  const auto events = OfThisFunction(trace, &v1::Packet::has_driver_allocate, &v1::Packet::driver_allocate);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].packet.driver_allocate().result(), 2U);
  EXPECT_TRUE(std::any_of(trace.packets.begin(), trace.packets.end(), [](const auto& recorded) {
    return recorded.packet.has_memory_query() &&
           recorded.packet.memory_query().reason() == v1::MemoryQuery::REASON_OUT_OF_MEMORY;
  }));
}

std::string NameOf(const testing::TestParamInfo<HookRow>& info) {
  std::string name = info.param.symbol;
  std::erase_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_'; });
  return name;
}

std::vector<HookRow> RowsWhere(bool (*wanted)(const HookRow&)) {
  std::vector<HookRow> rows;
  std::copy_if(std::begin(hooks::kHooks), std::end(hooks::kHooks), std::back_inserter(rows), wanted);
  return rows;
}

INSTANTIATE_TEST_SUITE_P(All, HookedFunction, testing::ValuesIn(hooks::kHooks), NameOf);
INSTANTIATE_TEST_SUITE_P(All, FunctionWithAResult, testing::ValuesIn(RowsWhere([](const HookRow& row) {
                           return row.role != Role::kReport && row.family != hooks::Family::kLoader;
                         })),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(All, DeviceAllocation, testing::ValuesIn(RowsWhere([](const HookRow& row) {
                           return row.role == Role::kAllocate;
                         })),
                         NameOf);

// What the library exports is the list: nothing else may stand in front of the program's own symbols.
TEST(Exports, AreTheHookedFunctionsAndNothingElse) {
  const Ended ended =
      RunProgram({"/usr/bin/nm", "-D", "--defined-only", "--format=just-symbols", VRAMTRACE_LIBRARY}, {});
  ASSERT_EQ(ended.status, 0) << ended.text;
  std::set<std::string> exported;
  std::istringstream lines(ended.text);
  for (std::string line; std::getline(lines, line);) exported.insert(line);
  std::set<std::string> listed = {"InitializeInjection"};  // called by the driver (CUDA_INJECTION64_PATH)
  for (const HookRow& row : hooks::kHooks) listed.insert(row.symbol);
  EXPECT_EQ(exported, listed);
}

TEST(Exports, NeedLibcAlone) {
  const Ended ended = RunProgram({"/usr/bin/readelf", "-d", VRAMTRACE_LIBRARY}, {});
  std::istringstream lines(ended.text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("(NEEDED)") == std::string::npos) continue;
    // libdl and libpthread are parts of libc since glibc 2.34, and files of their own before.
    constexpr const char* kLibc[] = {"[libc.so.6]", "[libdl.so.2]", "[libpthread.so.0]", "[ld-linux"};
    EXPECT_TRUE(std::any_of(std::begin(kLibc), std::end(kLibc), [&](const char* name) {
      return line.find(name) != std::string::npos;
    })) << line;
  }
}

}  // namespace
}  // namespace vramtrace::tests
