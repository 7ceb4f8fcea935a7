// Every row of hooked_functions.def on every path by which programs reach it (interception facts, 2.1): one
// event for the call, whatever the path. A row that a path can lead to and that has no case there fails.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string>
#include <vector>

#include "preload/recorder/hooks/hook_list.h"
#include "tests/preload/recorded.h"
#include "tests/preload/run_program.h"

namespace vramtrace::tests {
namespace {

using hooks::Family;
using hooks::HookRow;
using hooks::Role;

enum class Way {
  kProgram,          // hook_cases SYMBOL path, under LD_PRELOAD
  kPlugin,           // in a library that a program without CUDA opens, under LD_PRELOAD
  kInjection,        // the driver brings the recorder in, nothing is preloaded
  kBesideInjection,  // preloaded, with another library as the driver's injection library
};

struct Path {
  const char* name;
  Way way;
  const char* argument;  // hook_cases' path, or how plugin_host opens the plugin
  bool driver_only;      // leads to the driver's functions
};

constexpr Path kPaths[] = {
    {"dlsym", Way::kProgram, "dlsym", false},
    {"proc_address", Way::kProgram, "proc_address", true},
    {"proc_address_v2", Way::kProgram, "proc_address_v2", true},
    {"entry_point", Way::kProgram, "entry_point", true},
    {"entry_point_by_version", Way::kProgram, "entry_point_by_version", true},
    {"local", Way::kPlugin, "local", false},
    {"deepbind", Way::kPlugin, "deepbind", false},
    {"injection", Way::kInjection, "direct", false},
    {"beside_another_injection", Way::kBesideInjection, "direct", false},
};

struct RowOnPath {
  HookRow row;
  Path path;
};

// The cases of look-ups check what they hand out against the address that the program links to, which is one
// thing in a program and another in a library; they have tests of their own (hook_list_test).
bool LeadsTo(const Path& path, const HookRow& row) {
  if (row.role == Role::kLookup || row.role == Role::kReport) return false;
  if (path.driver_only) return row.family == Family::kDriver;
  return row.family == Family::kDriver || row.family == Family::kRuntime;
}

std::vector<RowOnPath> AllRowsOnAllPaths() {
  std::vector<RowOnPath> all;
  for (const Path& path : kPaths) {
    for (const HookRow& row : hooks::kHooks) {
      if (LeadsTo(path, row)) all.push_back({row, path});
    }
  }
  return all;
}

Ended RunOnPath(const RowOnPath& tested, const std::string& trace) {
  const Path& path = tested.path;
  Environment environment = Preloaded(trace);
  switch (path.way) {
    case Way::kProgram:
      break;
    case Way::kPlugin:
      return RunProgram({VRAMTRACE_PLUGIN_HOST, VRAMTRACE_HOOK_PLUGIN, path.argument, tested.row.symbol},
                        environment);
    case Way::kInjection:
      environment.erase("LD_PRELOAD");
      environment["CUDA_INJECTION64_PATH"] = VRAMTRACE_LIBRARY;
      break;
    case Way::kBesideInjection:
      environment["CUDA_INJECTION64_PATH"] =
          VRAMTRACE_HOOK_PLUGIN;  // any library: it is opened, and that is all
      break;
  }
  return RunProgram({VRAMTRACE_HOOK_CASES, tested.row.symbol, path.argument}, environment);
}

// Events of the row's role: what one call must have left, and what it must not have left twice.
long EventsOf(const Recorded& trace, Role role) {
  return std::count_if(trace.packets.begin(), trace.packets.end(), [role](const RecordedPacket& recorded) {
    const v1::Packet& packet = recorded.packet;
    switch (role) {
      case Role::kAllocate:
        return packet.has_driver_allocate();
      case Role::kFree:
        return packet.has_driver_free();
      case Role::kMap:
        return packet.has_memory_map() || packet.has_memory_unmap();
      case Role::kTrim:
        return packet.has_memory_query() &&
               packet.memory_query().reason() == v1::MemoryQuery::REASON_DRIVER_FREE;
      case Role::kAllocateHost:
        return packet.has_host_allocate();
      case Role::kFreeHost:
        return packet.has_host_free();
      case Role::kQuery:
        return packet.has_memory_query() && packet.memory_query().reason() == v1::MemoryQuery::REASON_PROGRAM;
      case Role::kLookup:
      case Role::kReport:
        break;
    }
    return false;
  });
}

class HookOnPath : public testing::TestWithParam<RowOnPath> {};

TEST_P(HookOnPath, IsRecordedOnce) {
  const ScratchFolder folder;
  const std::string file = folder.File("t.vtrace");
  const Ended ended = RunOnPath(GetParam(), file);
  ASSERT_EQ(ended.status, 0) << ended.text;
  EXPECT_EQ(ended.text, "");
  const Recorded trace(file);
  ASSERT_EQ(trace.error, "");
  EXPECT_EQ(EventsOf(trace, GetParam().row.role), 1);
}

std::string NameOf(const testing::TestParamInfo<RowOnPath>& info) {
  return std::string(info.param.path.name) + "_" + info.param.row.symbol;
}

INSTANTIATE_TEST_SUITE_P(All, HookOnPath, testing::ValuesIn(AllRowsOnAllPaths()), NameOf);

}  // namespace
}  // namespace vramtrace::tests
