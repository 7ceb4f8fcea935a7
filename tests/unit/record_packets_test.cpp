// What the functions of recorder.h write.

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "preload/recorder/record/recorder.h"
#include "tests/unit/record_scenario.h"

namespace vramtrace::tests {
namespace {

using record::CapturedStack;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using v1::Packet;

TEST(RecordPackets, ABlockEventSaysWhatTheHookSaid) {
  Scenario scenario;
  const auto result = scenario.Run([] {
    const FakeStack stack(3);
    record::BlockEvent event{
        .device = 1,
        .address = 0x7f1122334400,
        .bytes = 1024,
        .requested = 1000,
        .allocated_total = 1024,
        .reserved_total = 2097152,
        .autograd = {.sequence_number = 9, .operator_name = "14AddmmBackward0", .node_thread = 2}};
    record::BlockAllocated(event, stack.Captured());
    event.allocated_total = 0;
    record::BlockFreed(event, CapturedStack{});
  });
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_EQ(result.standard_error, "");
  const ReadTrace trace = ReadOnlyTrace(result);
  ASSERT_THAT(trace.Of(Packet::kBlockAllocate), SizeIs(1));
  ASSERT_THAT(trace.Of(Packet::kBlockFree), SizeIs(1));
  const ReadPacket& allocated = *trace.Of(Packet::kBlockAllocate)[0];
  const v1::BlockAllocate& a = allocated.packet.block_allocate();
  EXPECT_EQ(allocated.address, 0x7f1122334400U);
  EXPECT_EQ(a.bytes(), 1024U);
  EXPECT_EQ(a.requested(), 1000U);
  EXPECT_EQ(a.device(), 1U);
  EXPECT_EQ(a.autograd().sequence_number(), 9U);
  EXPECT_EQ(TextOf(trace, a.autograd().operator_name()), "14AddmmBackward0");
  EXPECT_EQ(a.autograd().node_thread(), 2U);
  EXPECT_EQ(a.allocated_total(), 1024U);
  EXPECT_EQ(a.reserved_total(), 2097152U);
  EXPECT_EQ(StackText(trace, a.stack()), "f0:100 < f1:101 < f2:102");
  const ReadPacket& freed = *trace.Of(Packet::kBlockFree)[0];
  EXPECT_EQ(freed.address, allocated.address);
  EXPECT_EQ(freed.packet.block_free().stack(), 0U);
  EXPECT_EQ(freed.packet.block_free().reserved_total(), 0U) << "unchanged since the event before";
  EXPECT_EQ(allocated.sequence, 1U);
  EXPECT_EQ(freed.sequence, 2U);
  EXPECT_LE(allocated.time_ns, freed.time_ns);
}

TEST(RecordPackets, TotalsComeWhenReservedChangesAndEvery1024Events) {
  Scenario scenario;
  const auto result = scenario.Run([] {
    for (uint64_t n = 0; n < 3000; ++n) record::BlockAllocated(Block(n), CapturedStack{});
    record::BlockEvent event = Block(3000);
    event.reserved_total += 512;
    record::BlockAllocated(event, CapturedStack{});
  });
  std::vector<uint64_t> with_totals;
  const ReadTrace trace = ReadOnlyTrace(result);
  for (const auto& [sequence, read] : trace.Events()) {
    if (read->packet.block_allocate().reserved_total() != 0) with_totals.push_back(sequence);
  }
  EXPECT_THAT(with_totals, ElementsAre(1, 1025, 2049, 3001));
}

TEST(RecordPackets, StacksShareTheirOuterFramesAndLinesNotInstructions) {
  Scenario scenario;
  const auto result = scenario.Run([] {
    FakeStack stack(3);
    record::BlockAllocated(Block(0), stack.Captured());
    stack.Frame(0).byte_offset += 1;  // another instruction of the same line
    record::BlockAllocated(Block(1), stack.Captured());
    stack.Frame(0).byte_offset += 2;  // another line
    record::BlockAllocated(Block(2), stack.Captured());
    stack.Frame(1).module_object = reinterpret_cast<const void*>(77);
    record::BlockAllocated(Block(3), stack.Captured());
  });
  const ReadTrace trace = ReadOnlyTrace(result);
  const auto blocks = trace.Of(Packet::kBlockAllocate);
  ASSERT_THAT(blocks, SizeIs(4));
  const auto stack = [&](size_t i) { return blocks[i]->packet.block_allocate().stack(); };
  EXPECT_EQ(stack(0), stack(1));
  EXPECT_EQ(StackText(trace, stack(0)), "f0:100 < f1:101 < f2:102");
  EXPECT_EQ(StackText(trace, stack(2)), "f0:101 < f1:101 < f2:102");
  EXPECT_EQ(StackText(trace, stack(3)), "f0:101 < f1:101@77 < f2:102");
  EXPECT_THAT(trace.Of(Packet::kCode), SizeIs(3));
  EXPECT_THAT(trace.Of(Packet::kFrame), SizeIs(5));
  EXPECT_THAT(trace.Of(Packet::kStack), SizeIs(3 + 1 + 2));
}

// The interpreter frees code objects (lambdas, exec) and gives their addresses to others.
TEST(RecordPackets, ACodeObjectAtAReusedAddressIsAnother) {
  Scenario scenario;
  const auto result = scenario.Run([] {
    const FakeStack stack(1);
    record::BlockAllocated(Block(0), stack.Captured());
    SetFingerprint(0, 5);
    record::BlockAllocated(Block(1), stack.Captured());
    SetFingerprint(0, 0);
    record::BlockAllocated(Block(2), stack.Captured());
  });
  const ReadTrace trace = ReadOnlyTrace(result);
  const auto blocks = trace.Of(Packet::kBlockAllocate);
  ASSERT_THAT(blocks, SizeIs(3));
  const auto text = [&](size_t i) { return StackText(trace, blocks[i]->packet.block_allocate().stack()); };
  EXPECT_EQ(text(0), "f0:100");
  EXPECT_EQ(text(1), "f0_5:100");
  EXPECT_EQ(text(2), "f0:100");
}

TEST(RecordPackets, NativeFramesHangBelowThePythonOnesAndNameTheirFile) {
  Scenario scenario;
  const auto result = scenario.Run([] {
    FakeStack stack(2);
    stack.SetNative({static_cast<char*>(dlsym(RTLD_DEFAULT, "gnu_get_libc_version")) + 4,
                     __builtin_return_address(0), reinterpret_cast<void*>(16)});
    const record::DriverEvent event{
        .function = "cudaMalloc",
        .caller = static_cast<char*>(dlsym(RTLD_DEFAULT, "gnu_get_libc_version")) + 4,
        .device = 2,
        .address = 0x7f0000200000,
        .bytes = 2097152,
        .kind = record::MemoryKind::kPool,
        .result = 0,
        .stream = 3,
        .duration_ns = 4000};
    record::DriverAllocated(event, stack.Captured());
    record::DriverFreed(event, stack.Captured());
  });
  const ReadTrace trace = ReadOnlyTrace(result);
  ASSERT_THAT(trace.Of(Packet::kDriverAllocate), SizeIs(1));
  const ReadPacket& read = *trace.Of(Packet::kDriverAllocate)[0];
  const v1::DriverAllocate& event = read.packet.driver_allocate();
  EXPECT_EQ(StackText(trace, event.stack()), "+libc.so.6 < +unit_record < +? < f0:100 < f1:101");
  EXPECT_EQ(TextOf(trace, event.function()), "cudaMalloc");
  EXPECT_EQ(TextOf(trace, event.caller()), "libc.so.6");
  EXPECT_EQ(read.address, 0x7f0000200000U);
  EXPECT_EQ(event.bytes(), 2097152U);
  EXPECT_EQ(event.kind(), v1::MEMORY_KIND_POOL);
  EXPECT_EQ(event.device(), 2U);
  EXPECT_EQ(event.stream(), 3U);
  EXPECT_EQ(event.duration_ns(), 4000U);
  EXPECT_EQ(trace.Of(Packet::kDriverFree)[0]->packet.driver_free().stack(), event.stack());
  bool libc_has_build_id = false;
  for (const ReadPacket* binary : trace.Of(Packet::kBinary)) {
    const v1::Binary& b = binary->packet.binary();
    EXPECT_LT(b.begin(), b.end());
    if (TextOf(trace, b.path()).ends_with("libc.so.6")) libc_has_build_id = b.build_id().size() == 20;
  }
  EXPECT_TRUE(libc_has_build_id);
}

TEST(RecordPackets, ALibraryLoadedLaterIsFound) {
  Scenario scenario;
  const auto result = scenario.Run([] {
    FakeStack stack(0);
    stack.SetNative({static_cast<char*>(dlsym(RTLD_DEFAULT, "gnu_get_libc_version")) + 4});
    record::DriverAllocated({.function = "cudaMalloc"}, stack.Captured());
    void* const library = dlopen("libresolv.so.2", RTLD_NOW);
    if (library == nullptr) _exit(77);
    stack.SetNative({static_cast<char*>(dlsym(library, "ns_initparse")) + 4});
    record::DriverAllocated({.function = "cudaMalloc"}, stack.Captured());
  });
  if (result.exit_status == 77) GTEST_SKIP() << "no libresolv.so.2";
  const ReadTrace trace = ReadOnlyTrace(result);
  ASSERT_THAT(trace.Of(Packet::kDriverAllocate), SizeIs(2));
  EXPECT_EQ(StackText(trace, trace.Of(Packet::kDriverAllocate)[1]->packet.driver_allocate().stack()),
            "+libresolv.so.2");
}

TEST(RecordPackets, EveryFunctionWritesItsPacket) {
  Scenario scenario;
  const auto result = scenario.Run([] {
    const CapturedStack none;
    const record::DriverEvent event{.function = "cudaHostAlloc", .address = 0x1000, .bytes = 4096};
    record::HostAllocated(event, none);
    record::HostFreed(event, none);
    record::Mapped(1, 0x2000, 4096, 7, 8);
    record::Unmapped(1, 0x2000, 4096);
    record::DeviceMemory(1, 10, 20, record::QueryReason::kDriverFree);
    record::ContextChanged(1, 0xc0, true);
    record::DeviceDescribed({.device = 1,
                             .name = "Simulated",
                             .total_bytes = 20,
                             .compute_major = 8,
                             .compute_minor = 9,
                             .multiprocessors = 128,
                             .uuid = "GPU-1"});
    record::OutOfMemory(
        {.device = 1, .address = 0, .bytes = 1 << 30, .allocated_total = 5, .reserved_total = 6}, none);
    constexpr int64_t kShape[] = {768, 3072};
    record::Labelled({.kind = record::LabelKind::kOptimizerState,
                      .address = 0x3000,
                      .bytes = 64,
                      .device = 1,
                      .name = "h.0.weight",
                      .state_key = "exp_avg",
                      .dtype = "float32",
                      .shape = kShape,
                      .shape_count = 2});
    record::InputSeen({.name = "input_ids",
                       .address = 0x4000,
                       .bytes = 32,
                       .dtype = "int64",
                       .shape = kShape,
                       .shape_count = 1,
                       .step = 2,
                       .on_device = true,
                       .module_object = 0xa});
    record::ModuleNamed(0xa, 0xb, "h.0", "Block");
    record::StepMarked(3, true, "AdamW", 0xd);
    record::PhaseMarked("evaluate", true);
    record::ProcessLearned({.python_version = "3.11.7",
                            .torch_version = "2.15.0",
                            .driver_version = "580",
                            .cuda_runtime_version = "13.2",
                            .simulated = 1});
    record::FeatureSet("native_frames", false, "no libunwind");
  });
  EXPECT_EQ(result.standard_error, "");
  const ReadTrace trace = ReadOnlyTrace(result);
  const auto only = [&trace](Packet::BodyCase body) -> const ReadPacket& {
    EXPECT_THAT(trace.Of(body), SizeIs(1)) << body;
    return *trace.Of(body).at(0);
  };
  EXPECT_EQ(only(Packet::kHostAllocate).address, 0x1000U);
  EXPECT_EQ(only(Packet::kHostAllocate).packet.host_allocate().bytes(), 4096U);
  EXPECT_EQ(only(Packet::kHostFree).address, 0x1000U);
  EXPECT_EQ(only(Packet::kMemoryMap).packet.memory_map().handle(), 7U);
  EXPECT_EQ(only(Packet::kMemoryMap).packet.memory_map().offset(), 8U);
  EXPECT_EQ(only(Packet::kMemoryUnmap).address, 0x2000U);
  EXPECT_EQ(only(Packet::kMemoryQuery).packet.memory_query().reason(), v1::MemoryQuery::REASON_DRIVER_FREE);
  EXPECT_TRUE(only(Packet::kContext).packet.context().destroyed());
  EXPECT_EQ(only(Packet::kDevice).packet.device().name(), "Simulated");
  EXPECT_EQ(only(Packet::kOutOfMemory).packet.out_of_memory().requested(), 1U << 30);
  const v1::Label& label = only(Packet::kLabel).packet.label();
  EXPECT_EQ(label.kind(), v1::Label::KIND_OPTIMIZER_STATE);
  EXPECT_EQ(only(Packet::kLabel).address, 0x3000U);
  EXPECT_EQ(TextOf(trace, label.name()), "h.0.weight");
  EXPECT_EQ(TextOf(trace, label.state_key()), "exp_avg");
  EXPECT_EQ(TextOf(trace, label.dtype()), "float32");
  EXPECT_THAT(label.shape(), ElementsAre(768, 3072));
  const v1::InputTensor& input = only(Packet::kInputTensor).packet.input_tensor();
  EXPECT_EQ(TextOf(trace, input.name()), "input_ids");
  EXPECT_EQ(only(Packet::kInputTensor).address, 0x4000U);
  EXPECT_TRUE(input.on_device());
  EXPECT_EQ(TextOf(trace, only(Packet::kModule).packet.module().path()), "h.0");
  EXPECT_EQ(only(Packet::kStep).packet.step().edge(), v1::Step::EDGE_OPTIMIZER_END);
  EXPECT_EQ(TextOf(trace, only(Packet::kStep).packet.step().optimizer()), "AdamW");
  EXPECT_EQ(TextOf(trace, only(Packet::kPhase).packet.phase().name()), "evaluate");
  EXPECT_EQ(TextOf(trace, only(Packet::kFeature).packet.feature().name()), "native_frames");
  EXPECT_EQ(only(Packet::kFeature).packet.feature().reason(), "no libunwind");
  ASSERT_THAT(trace.Of(Packet::kProcess), SizeIs(2));
  EXPECT_EQ(trace.Of(Packet::kProcess)[1]->packet.process().torch_version(), "2.15.0");
  EXPECT_TRUE(trace.Of(Packet::kProcess)[1]->packet.process().simulated());
  // Every number of the sequence was used once.
  const auto events = trace.Events();
  EXPECT_EQ(events.rbegin()->first, events.size());
  EXPECT_EQ(only(Packet::kTrailer).packet.trailer().events(), events.size());
}

TEST(RecordPackets, WhatIsLearnedBeforeTheFirstEventIsKept) {
  Scenario scenario;
  const auto result = scenario.Run([] {
    EXPECT_FALSE(record::Recording());
    record::FeatureSet("python_frames", true, "");
    for (uint64_t i = 0; i < 20000; ++i) {
      record::ModuleNamed(0x1000 + i, 0, "layers." + std::to_string(i), "Linear");
      record::ModuleNamed(0x1000 + i, 0, "layers." + std::to_string(i), "Linear");  // no news
    }
    record::ModuleNamed(0x1000, 0, "renamed", "Linear");
    record::StepMarked(0, false, "SGD", 1);  // a step without CUDA is no step of ours
    EXPECT_FALSE(record::Recording());
    record::BlockAllocated(Block(0), CapturedStack{});
    EXPECT_TRUE(record::Recording());
  });
  const ReadTrace trace = ReadOnlyTrace(result);
  EXPECT_THAT(trace.Of(Packet::kFeature), SizeIs(1));
  EXPECT_THAT(trace.Of(Packet::kStep), IsEmpty());
  const auto modules = trace.Of(Packet::kModule);
  ASSERT_THAT(modules, SizeIs(20001));
  EXPECT_EQ(TextOf(trace, modules[19999]->packet.module().path()), "layers.19999");
  EXPECT_EQ(TextOf(trace, modules[20000]->packet.module().path()), "renamed");
  EXPECT_EQ(trace.Events().size(), 20002U);
  for (const trace::ChunkFields& chunk : trace.chunks) {
    EXPECT_TRUE(chunk.Sealed());
    EXPECT_EQ(chunk.process_id, trace.Of(Packet::kProcess)[0]->packet.process().pid());
  }
}

TEST(RecordPackets, AProgramWithoutCudaLeavesNoFile) {
  Scenario scenario;
  const auto result = scenario.Run([] {
    record::ModuleNamed(1, 0, "", "Net");
    record::ProcessLearned({.python_version = "3.11.7"});
  });
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_EQ(result.standard_error, "");
  EXPECT_THAT(result.traces, IsEmpty());
}

TEST(RecordPackets, TheProcessPacketSaysWhoWasRunAndHidesSecrets) {
  Scenario scenario;
  const auto result = scenario.Run([] {
    setenv("CUDA_VISIBLE_DEVICES", "0,1", 1);
    setenv("NCCL_DEBUG", "INFO", 1);
    setenv("PYTORCH_HUB_TOKEN", "verysecret", 1);
    setenv("HOME_ADDRESS", "private", 1);
    setenv("RANK", "3", 1);
    setenv("LOCAL_RANK", "1", 1);
    setenv("WORLD_SIZE", "8", 1);
    record::BlockAllocated(Block(0), CapturedStack{});
  });
  const ReadTrace trace = ReadOnlyTrace(result);
  ASSERT_THAT(trace.Of(Packet::kProcess), SizeIs(1));
  const v1::Process& process = trace.Of(Packet::kProcess)[0]->packet.process();
  EXPECT_EQ(process.rank(), 3U);
  EXPECT_EQ(process.local_rank(), 1U);
  EXPECT_EQ(process.world_size(), 8U);
  EXPECT_EQ(process.parent_pid(), static_cast<uint32_t>(getpid()));
  EXPECT_THAT(process.executable(), testing::EndsWith("unit_record"));
  EXPECT_THAT(process.argument(), testing::Not(IsEmpty()));
  EXPECT_EQ(process.writer_version(), VRAMTRACE_VERSION);
  EXPECT_EQ(process.working_folder(),
            std::filesystem::canonical(testing::TempDir()).string() + "/" +
                std::filesystem::path(result.traces[0]).parent_path().filename().string());
  EXPECT_THAT(process.environment(), testing::Contains("CUDA_VISIBLE_DEVICES=0,1"));
  EXPECT_THAT(process.environment(), testing::Contains("NCCL_DEBUG=INFO"));
  EXPECT_THAT(process.environment(), testing::Contains("PYTORCH_HUB_TOKEN=***"));
  EXPECT_THAT(process.environment(), testing::Not(testing::Contains(HasSubstr("private"))));
  // The clocks agree: the process began a moment ago, by both.
  const uint64_t event = trace.Events().begin()->second->time_ns;
  EXPECT_LT(event - process.start_monotonic_ns(), 120'000'000'000U);
  EXPECT_NEAR(static_cast<double>(process.start_unix_ns()) / 1e9, static_cast<double>(time(nullptr)), 120);
}

TEST(RecordPackets, ErrnoIsKept) {
  Scenario scenario;
  const auto result = scenario.Run([] {
    FakeStack stack(3);
    stack.SetNative({__builtin_return_address(0)});
    for (uint64_t n = 0; n < 10000; ++n) {
      errno = EDOM;
      record::BlockAllocated(Block(n), stack.Captured());
      if (errno != EDOM) _exit(1);
    }
  });
  EXPECT_EQ(result.exit_status, 0);
}

}  // namespace
}  // namespace vramtrace::tests
