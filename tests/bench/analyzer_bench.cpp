// The stages of `analyze` on a built trace of a million events, one at a time. items_per_second is events a
// second.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <filesystem>

#include "analyzer/report/build.h"
#include "analyzer/timeline/scan.h"
#include "analyzer/timeline/snapshot.h"
#include "analyzer/trace/event_stream.h"
#include "tests/support/training_run.h"

namespace vramtrace {
namespace {

constexpr int kLayers = 40;
constexpr int kSteps = 2000;

// Made once, gone with the process.
class TraceOnDisk {
 public:
  TraceOnDisk()
      : path_(std::filesystem::temp_directory_path() / ("analyzer-bench-" + std::to_string(::getpid()))) {
    testing::TraceBuilder builder;
    testing::TrainingRun({.layers = kLayers, .steps = kSteps}).Play(&builder);
    builder.Write(path_.string());
    events_ = static_cast<int64_t>(builder.sequence());
  }
  ~TraceOnDisk() { std::filesystem::remove(path_); }
  [[nodiscard]] std::string path() const { return path_.string(); }
  [[nodiscard]] int64_t events() const { return events_; }

 private:
  std::filesystem::path path_;
  int64_t events_ = 0;
};

const TraceOnDisk& Trace() {
  static const TraceOnDisk trace;
  return trace;
}

void CountEvents(benchmark::State& state) { state.SetItemsProcessed(state.iterations() * Trace().events()); }

void Stream(benchmark::State& state) {
  const auto file = trace::TraceFile::Open(Trace().path()).value();
  for (auto _ : state) {
    trace::EventStream stream(file);
    while (const trace::Event* event = stream.Next()) benchmark::DoNotOptimize(event);
  }
  CountEvents(state);
}
BENCHMARK(Stream)->Unit(benchmark::kMillisecond);

void Tables(benchmark::State& state) {
  const auto file = trace::TraceFile::Open(Trace().path()).value();
  for (auto _ : state) benchmark::DoNotOptimize(model::ReadTables(*file));
  CountEvents(state);
}
BENCHMARK(Tables)->Unit(benchmark::kMillisecond);

void Scan(benchmark::State& state) {
  const auto file = trace::TraceFile::Open(Trace().path()).value();
  const auto tables = model::ReadTables(*file);
  const auto stacks = std::make_shared<model::StackTable>(*tables);
  for (auto _ : state) benchmark::DoNotOptimize(timeline::ScanTrace(file, tables, stacks));
  CountEvents(state);
}
BENCHMARK(Scan)->Unit(benchmark::kMillisecond);

void WholeReport(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(report::BuildReport(Trace().path(), {}));
  CountEvents(state);
}
BENCHMARK(WholeReport)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace vramtrace

BENCHMARK_MAIN();
