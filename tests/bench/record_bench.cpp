// What one event costs the thread that makes it: from a captured stack to a committed packet. The walk that
// captures the stack is not in it (preload/recorder/stacks).
//
// Each measurement records to a file of its own in a child process, so that the numbers are those of a fresh
// recorder with its file growing, and the benchmark can be repeated.

#include <benchmark/benchmark.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "preload/recorder/record/hash.h"
#include "preload/recorder/record/recorder.h"
#include "preload/trace/chunk_writer.h"
#include "preload/trace/crc32c.h"
#include "preload/trace/encoder.h"

// Stand-ins for preload/recorder/stacks: a fingerprint that reads the code object, as the real one does.
namespace vramtrace::stacks {

uint64_t CodeFingerprint(const void* code) noexcept { return *static_cast<const uint64_t*>(code); }
bool DescribeCode(const void*, CodeText* text) noexcept {
  *text = CodeText{"/src/model.py", "Model.forward", 1};
  return true;
}
uint32_t LineOfCode(const void*, int32_t byte_offset) noexcept { return static_cast<uint32_t>(byte_offset); }

}  // namespace vramtrace::stacks

namespace vramtrace {
namespace {

constexpr int kStacks = 333;  // distinct ones in a step of GPT-2

// Python stacks as a training step has them: a common outer part, different inner ends.
class Stacks {
 public:
  explicit Stacks(int depth) : depth_(depth) {
    for (size_t i = 0; i < codes_.size(); ++i) codes_[i][0] = i * 0x9E3779B97F4A7C15U;
    for (int stack = 0; stack < kStacks; ++stack) {
      for (int i = 0; i < depth; ++i) {
        const int own = i < 5 ? stack : 0;
        frames_.push_back({codes_[static_cast<size_t>((own * 7 + i) % 256)].data(), own + i, nullptr});
      }
    }
  }
  [[nodiscard]] record::CapturedStack At(uint64_t n) const {
    record::CapturedStack stack;
    stack.python = frames_.data() + n % kStacks * static_cast<size_t>(depth_);
    stack.python_count = depth_;
    return stack;
  }

 private:
  alignas(64) std::array<std::array<uint64_t, 24>, 256> codes_{};  // the size of a code object
  int depth_;
  std::vector<stacks::PythonFrame> frames_;
};

record::BlockEvent BlockOf(uint64_t n) {
  return {.device = 0,
          .address = 0x7f0000000000 + n % 4096 * 1048576,
          .bytes = 25165824,
          .requested = 25165000,
          .allocated_total = n,
          .reserved_total = 1 << 30,
          .autograd = {.sequence_number = n % 2000, .operator_name = nullptr, .node_thread = 0}};
}

void BM_BlockAllocated(benchmark::State& state) {
  const Stacks own(static_cast<int>(state.range(0)));
  uint64_t n = 0;
  for ([[maybe_unused]] auto _ : state) {
    record::BlockAllocated(BlockOf(n), own.At(n));
    ++n;
  }
  state.SetItemsProcessed(static_cast<int64_t>(n));
}
BENCHMARK(BM_BlockAllocated)->Arg(0)->Arg(10)->Arg(30)->Arg(100);

void BM_BlockFreedWithoutStack(benchmark::State& state) {
  uint64_t n = 0;
  for ([[maybe_unused]] auto _ : state) record::BlockFreed(BlockOf(n++), {});
}
BENCHMARK(BM_BlockFreedWithoutStack);

void BM_BlockAllocatedByThreads(benchmark::State& state) {
  static const Stacks stacks(30);
  uint64_t n = 0;
  for ([[maybe_unused]] auto _ : state) {
    record::BlockAllocated(BlockOf(n), stacks.At(n));
    ++n;
  }
}
BENCHMARK(BM_BlockAllocatedByThreads)->Threads(2);

void BM_NewStack(benchmark::State& state) {
  alignas(64) static std::array<uint64_t, 24> code{};
  std::array<stacks::PythonFrame, 30> frames;
  frames.fill({code.data(), 0, nullptr});
  int32_t n = 0;
  for ([[maybe_unused]] auto _ : state) {
    frames[0].byte_offset = ++n;
    record::BlockAllocated(BlockOf(0), {.python = frames.data(), .python_count = 30});
  }
}
BENCHMARK(BM_NewStack)->Iterations(20000);

void BM_Labelled(benchmark::State& state) {
  constexpr int64_t kShape[] = {768, 3072};
  for ([[maybe_unused]] auto _ : state) {
    record::Labelled({.kind = record::LabelKind::kGradient,
                      .address = 0x7f0000000000,
                      .bytes = 9437184,
                      .device = 0,
                      .name = "transformer.h.11.mlp.c_fc.weight",
                      .state_key = {},
                      .dtype = "float32",
                      .shape = kShape,
                      .shape_count = 2});
  }
}
BENCHMARK(BM_Labelled);

void BM_EncodeBlockAllocate(benchmark::State& state) {
  const trace::BlockAllocatePacket packet{
      .address_delta = -123456789,
      .bytes = 25165824,
      .requested = 25165000,
      .stack = 300,
      .device = 0,
      .thread = 0,
      .autograd = {.sequence_number = 1234, .operator_name = 17, .node_thread = 1},
      .allocated_total = 0,
      .reserved_total = 0};
  std::byte buffer[trace::kEventBufferBytes];
  size_t bytes = 0;
  for ([[maybe_unused]] auto _ : state) {
    const auto encoded = trace::EncodePacket({1, 4321}, packet, buffer);
    benchmark::DoNotOptimize(encoded.data());
    bytes = encoded.size();
  }
  state.counters["bytes"] = static_cast<double>(bytes);
}
BENCHMARK(BM_EncodeBlockAllocate);

void BM_Crc32cOfAChunk(benchmark::State& state) {
  const std::vector<char> chunk(trace::kDefaultChunkBytes, 'x');
  for ([[maybe_unused]] auto _ : state)
    benchmark::DoNotOptimize(trace::Crc32c(0, chunk.data(), chunk.size()));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * chunk.size()));
}
BENCHMARK(BM_Crc32cOfAChunk);

}  // namespace
}  // namespace vramtrace

int main(int argc, char** argv) {
  // The trace of the benchmark itself: in memory where there is such a place, removed at the end.
  std::string folder =
      std::filesystem::exists("/dev/shm") ? "/dev/shm/vramtrace-XXXXXX" : "/tmp/vramtrace-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return 1;
  setenv("VRAMTRACE_OUTPUT", (folder + "/bench.vtrace").c_str(), 1);
  setenv("VRAMTRACE_MAX_SIZE", "4GiB", 0);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const bool open = vramtrace::record::EnsureOpen();
  benchmark::RunSpecifiedBenchmarks();
  const bool still_recording = vramtrace::record::Recording();
  std::filesystem::remove_all(folder);
  // Numbers of a recorder that had stopped would be far too good.
  return open && still_recording ? 0 : 1;
}
