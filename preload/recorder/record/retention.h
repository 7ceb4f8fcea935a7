#pragma once
// Keeps a trace below VRAMTRACE_MAX_SIZE for a run of any length.
//
// The sequence of events is cut into spans: a training step each, windows of 10 s where there are no steps,
// parts where a step would fill a sixteenth of the file. Kept whole are the first three spans, the last three
// and the one under way, the five with the highest peaks, the one with the most reserved, two with the most
// taken from the driver and the first two that ran out of memory. Of everything else the lasting effect is
// kept (net_effect.h) and a StepSummary.
//
// Nothing happens before seven eighths of the file are in use. Then whoever needs a chunk first looks through
// the oldest few, writes what is to be kept of them to chunks of their own, and gives them back: some
// milliseconds for each 2 MiB of trace, on the thread that filled them. No thread of our own.
//
//   [first spans, in place] [dropped][kept][dropped]...[dropped] [recent spans, in place]
//                           '-- ranges, chunks of kind kKept --' ^consumed_

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "preload/recorder/record/chunk_merge.h"
#include "preload/recorder/record/mapped_array.h"
#include "preload/recorder/record/range_writer.h"
#include "preload/recorder/record/step_statistics.h"
#include "preload/recorder/record/threads.h"
#include "preload/trace/chunk_file.h"

namespace vramtrace::record {

class Retention {
 public:
  struct Settings {
    trace::ChunkFile* file = nullptr;
    uint64_t file_id = 0;
    uint32_t process_id = 0;
    std::atomic<uint64_t>* sequence = nullptr;
    uint64_t now_ns = 0;
  };
  // Files of fewer chunks have no room to choose in: they end at their limit.
  static constexpr uint64_t kFewestChunks = 32;

  constexpr Retention() = default;

  void Start(const Settings& settings) noexcept;
  // The file has a limit that can be kept.
  [[nodiscard]] bool On() const noexcept { return on_.load(std::memory_order_relaxed); }

  StepStatistics statistics;
  DriverLedger ledger;

  // An optimizer step ended with the event `last`; `step->ended` stays false where it had ended before
  // (several optimizers end one step).
  struct EndedStep {
    bool ended = false;
    uint64_t events = 0;
    std::array<DeviceStep, StepStatistics::kDevices> devices{};
  };
  void StepEnded(uint64_t number, uint64_t last, uint64_t time_ns, EndedStep* step) noexcept;

  // Before a lane takes a chunk for the event `sequence`: makes room where there is little.
  void MakeRoom(uint64_t sequence, uint64_t time_ns) noexcept;

  // A lane's chunk is complete.
  void Sealed(const trace::ChunkWriter& chunk) noexcept;

  // A lane whose chunk was taken away finds out here; the chunk is closed then.
  void AwaitTheft(Lane* lane) noexcept;

  void LockForFork() noexcept;
  void UnlockAfterFork() noexcept;

 private:
  // Numbers of the events of a part of the sequence, and the steps that ended in it.
  struct Span {
    uint64_t first = 0;
    uint64_t last = 0;
    uint64_t first_step = 0;
    uint64_t steps = 0;
  };
  enum class Reason : uint8_t { kPeak, kReserved, kDriver, kOutOfMemory };
  struct Kept {
    Span span;
    Reason reason{};
    uint64_t score = 0;
  };
  // What is kept of a part of the sequence, on disk.
  struct Range {
    Span span;
    bool whole = false;  // every event; else the lasting effect
    uint64_t dropped = 0;
    uint64_t first_time_ns = 0;
    uint64_t last_time_ns = 0;
    MappedArray<uint32_t> chunks;
  };
  struct SealedChunk {
    uint64_t index;
    uint64_t base;  // its events lie in (base, last]
    uint64_t last;
  };
  // A merge and the event that it stands at.
  struct Reader {
    ChunkMerge merge;
    EventView event;
    bool more = false;
    void Start() noexcept { more = merge.Next(&event); }
  };
  static constexpr size_t kMostKept = 16;
  static constexpr size_t kMostRanges = 64;
  static constexpr size_t kBatchChunks = 8;

  void CloseSpan(uint64_t last, uint64_t time_ns, uint64_t steps, EndedStep* step) noexcept;
  void Offer(const Span& span, Reason reason, size_t places, uint64_t score) noexcept;
  [[nodiscard]] bool IsKept(const Span& span) const noexcept;
  [[nodiscard]] const Span* KeptAt(uint64_t sequence) const noexcept;
  [[nodiscard]] uint64_t NextKept(uint64_t sequence) const noexcept;
  void ForgetBeyondBudget() noexcept;

  [[nodiscard]] bool FindFirstSpans() noexcept;
  [[nodiscard]] uint64_t Horizon(uint64_t sequence, Lane** holder) noexcept;
  [[nodiscard]] bool Progress(uint64_t sequence) noexcept;
  [[nodiscard]] uint64_t BatchEnd(uint64_t horizon) noexcept;
  [[nodiscard]] bool ConsumeUntil(uint64_t end) noexcept;
  [[nodiscard]] bool CopyWhole(Reader* reader, Range* range) noexcept;
  [[nodiscard]] bool CopyEffect(Reader* reader, Range* range) noexcept;
  [[nodiscard]] bool JoinForgotten() noexcept;
  [[nodiscard]] bool Join(size_t first, size_t last) noexcept;
  void Replace(size_t first, size_t count, const Range& by) noexcept;
  void GiveBackConsumed() noexcept;
  [[nodiscard]] bool Relax(uint64_t sequence, uint64_t time_ns) noexcept;
  [[nodiscard]] RangeWriter::Identity IdentityOf(const Span& span) const noexcept;
  static void Note(const EventView& event, Range* range) noexcept;

  std::mutex mutex_;  // everything below but sealed_
  std::atomic<bool> on_{false};
  Settings settings_;

  Span open_;  // the span under way
  uint64_t open_since_ns_ = 0;
  uint64_t open_chunks_ = 0;          // handed out since it began
  uint64_t step_events_from_ = 1;     // number of the first event since the newest step
  uint64_t last_step_ = 0;            // one more than the newest step that ended
  std::array<uint64_t, 3> recent_{};  // first numbers of the last spans, the oldest first
  size_t recent_count_ = 0;
  uint64_t spans_ = 0;              // that were closed
  uint64_t steps_ = 0;              // of those, spans that a step closed
  uint64_t first_spans_until_ = 0;  // the first three spans end here
  uint64_t first_steps_until_ = 0;  // the first three steps end here
  uint64_t first_until_ = 0;        // what is left in place at the front ends here; 0: not decided
  std::array<Kept, kMostKept> kept_{};
  size_t kept_count_ = 0;

  uint64_t consumed_ = 0;                    // events up to here are in front or in ranges_
  std::array<Range, kMostRanges> ranges_{};  // one behind the other
  size_t range_count_ = 0;

  std::mutex sealed_mutex_;
  MappedArray<SealedChunk> sealed_;  // complete and not yet given back
};

}  // namespace vramtrace::record
