#include "preload/recorder/record/retention.h"

#include <algorithm>

#include "preload/trace/fields.h"

namespace vramtrace::record {
namespace {

using trace::FileStatus;

constexpr uint64_t kWindowNs = 10'000'000'000;
constexpr uint32_t kStepBody = 14;

// Parts of the file: what may stay at its front, for spans that are kept whole, for one span, and what is
// free at any time for the names' tables and for copies.
constexpr uint64_t kFrontPart = 4;
constexpr uint64_t kKeptPart = 4;
constexpr uint64_t kSpanPart = 16;
constexpr uint64_t kFreePart = 8;

}  // namespace

void Retention::Start(const Settings& settings) noexcept {
  const std::lock_guard lock(mutex_);
  settings_ = settings;
  open_.first = 1;
  open_since_ns_ = settings.now_ns;
  const uint64_t chunks = settings.file->MaxChunks();
  on_.store(chunks != UINT64_MAX && chunks >= kFewestChunks, std::memory_order_release);
}

void Retention::LockForFork() noexcept {
  mutex_.lock();
  sealed_mutex_.lock();
  ledger.LockForFork();
}

void Retention::UnlockAfterFork() noexcept {
  ledger.UnlockAfterFork();
  sealed_mutex_.unlock();
  mutex_.unlock();
}

// -------------------------------------------------------------------------------------------------- spans

void Retention::StepEnded(uint64_t number, uint64_t last, uint64_t time_ns, EndedStep* step) noexcept {
  const std::lock_guard lock(mutex_);
  if (number < last_step_) return;
  step->ended = true;
  step->events = last + 1 - std::min(step_events_from_, last + 1);
  step_events_from_ = last + 1;
  open_.first_step = last_step_;
  const uint64_t steps = number + 1 - last_step_;
  last_step_ = number + 1;
  CloseSpan(last, time_ns, steps, step);
}

void Retention::CloseSpan(uint64_t last, uint64_t time_ns, uint64_t steps, EndedStep* step) noexcept {
  Span span = open_;
  span.last = last;
  span.steps = steps;
  uint64_t peak = 0;
  uint64_t reserved = 0;
  uint64_t driver = 0;
  for (uint32_t device = 0; device < StepStatistics::kDevices; ++device) {
    const DeviceStep counted = statistics.Take(device, last);
    DeviceStep& sum = step->devices[device];
    sum = counted;
    peak = std::max(peak, counted.peak);
    reserved = std::max(reserved, counted.reserved);
    driver = std::max(driver, counted.driver);
  }
  const bool out_of_memory = statistics.TakeOutOfMemory();
  open_ = {.first = last + 1, .last = 0, .first_step = last_step_, .steps = 0};
  open_since_ns_ = time_ns;
  open_chunks_ = 0;
  if (!On() || span.last < span.first) return;

  ++spans_;
  if (spans_ <= 3) first_spans_until_ = last;
  if (steps > 0 && ++steps_ <= 3) first_steps_until_ = last;
  Offer(span, Reason::kPeak, 5, peak);
  Offer(span, Reason::kReserved, 1, reserved);
  Offer(span, Reason::kDriver, 2, driver);
  // The first ones: equal scores do not beat them.
  Offer(span, Reason::kOutOfMemory, 2, out_of_memory ? 1 : 0);
  ForgetBeyondBudget();
  if (recent_count_ == recent_.size()) {
    std::copy(recent_.begin() + 1, recent_.end(), recent_.begin());
    --recent_count_;
  }
  recent_[recent_count_++] = span.first;
}

// Keeps the span whole where it is among the best of its reason. Among equals the first one stays.
void Retention::Offer(const Span& span, Reason reason, size_t places, uint64_t score) noexcept {
  if (score == 0) return;
  size_t count = 0;
  size_t lowest = kept_count_;
  for (size_t i = 0; i < kept_count_; ++i) {
    if (kept_[i].reason != reason) continue;
    ++count;
    if (lowest == kept_count_ || kept_[i].score < kept_[lowest].score) lowest = i;
  }
  if (count < places) {
    if (kept_count_ < kMostKept) kept_[kept_count_++] = {span, reason, score};
  } else if (score > kept_[lowest].score) {
    kept_[lowest] = {span, reason, score};
  }
}

bool Retention::IsKept(const Span& span) const noexcept {
  return std::any_of(kept_.begin(), kept_.begin() + kept_count_, [&span](const Kept& kept) {
    return kept.span.first <= span.first && span.last <= kept.span.last;
  });
}

const Retention::Span* Retention::KeptAt(uint64_t sequence) const noexcept {
  for (size_t i = 0; i < kept_count_; ++i) {
    if (kept_[i].span.first <= sequence && sequence <= kept_[i].span.last) return &kept_[i].span;
  }
  return nullptr;
}

uint64_t Retention::NextKept(uint64_t sequence) const noexcept {
  uint64_t next = UINT64_MAX;
  for (size_t i = 0; i < kept_count_; ++i) {
    if (kept_[i].span.first > sequence) next = std::min(next, kept_[i].span.first);
  }
  return next;
}

// Spans that are kept whole may take a quarter of the file; the highest peak goes last.
void Retention::ForgetBeyondBudget() noexcept {
  const auto whole_chunks = [this] {
    size_t chunks = 0;
    for (size_t i = 0; i < range_count_; ++i) {
      if (ranges_[i].whole && IsKept(ranges_[i].span)) chunks += ranges_[i].chunks.Size();
    }
    return chunks;
  };
  const uint64_t most_whole = settings_.file->MaxChunks() / kKeptPart;
  // Each range takes a chunk at least: a small file has room for few.
  const uint64_t most_kept = std::max<uint64_t>(1, most_whole / 4);
  while (kept_count_ > 1 && (whole_chunks() > most_whole || kept_count_ > most_kept)) {
    size_t worst = 0;
    for (size_t i = 1; i < kept_count_; ++i) {
      const bool lesser = kept_[i].reason != kept_[worst].reason ? kept_[i].reason > kept_[worst].reason
                                                                 : kept_[i].score < kept_[worst].score;
      if (lesser) worst = i;
    }
    std::copy(kept_.begin() + worst + 1, kept_.begin() + kept_count_, kept_.begin() + worst);
    --kept_count_;
  }
}

// ------------------------------------------------------------------------------------------------- chunks

void Retention::Sealed(const trace::ChunkWriter& chunk) noexcept {
  if (!On()) return;
  const std::lock_guard lock(sealed_mutex_);
  // Without memory the chunk just stays where it is.
  [[maybe_unused]] const bool kept =
      sealed_.Push({chunk.Memory().index, chunk.BaseSequence(), chunk.LastSequence()});
}

void Retention::AwaitTheft(Lane* lane) noexcept {
  const std::lock_guard lock(mutex_);
  lane->stolen.store(false, std::memory_order_relaxed);
}

void Retention::MakeRoom(uint64_t sequence, uint64_t time_ns) noexcept {
  if (!On()) return;
  const std::lock_guard lock(mutex_);
  const uint64_t most = settings_.file->MaxChunks();
  ++open_chunks_;
  const bool window = last_step_ == 0 && time_ns > open_since_ns_ + kWindowNs;
  if (window || open_chunks_ > std::max<uint64_t>(2, most / kSpanPart)) {
    EndedStep unused;
    CloseSpan(sequence - 1, time_ns, 0, &unused);
  }
  const uint64_t wanted = std::max<uint64_t>(kBatchChunks, most / kFreePart);
  // A few times the batch that is due: the file shrinks back to its mark over the next chunks.
  for (int i = 0; i < 8 && settings_.file->FreeChunks() < wanted; ++i) {
    if (!Progress(sequence) && !Relax(sequence, time_ns)) return;
  }
}

// The last spans cannot all be kept: gives the oldest of them up. False when there is nothing left to give.
bool Retention::Relax(uint64_t sequence, uint64_t time_ns) noexcept {
  if (settings_.file->FreeChunks() > kBatchChunks) return false;  // no need yet
  if (recent_count_ > 0) {
    std::copy(recent_.begin() + 1, recent_.end(), recent_.begin());
    --recent_count_;
    return true;
  }
  if (open_chunks_ < 2) return false;
  EndedStep unused;
  CloseSpan(sequence - 1, time_ns, 0, &unused);
  return true;
}

// Decides what stays in place at the front: the first three steps, or what there is instead, as far as a
// quarter of the file holds it.
bool Retention::FindFirstSpans() noexcept {
  if (first_until_ != 0) return true;
  uint64_t until = first_steps_until_ != 0 ? first_steps_until_ : first_spans_until_;
  if (until == 0) until = open_.first > 1 ? open_.first - 1 : 0;
  const std::lock_guard lock(sealed_mutex_);
  const auto chunks_until = [this](uint64_t last) {
    return static_cast<uint64_t>(std::count_if(sealed_.begin(), sealed_.end(),
                                               [last](const SealedChunk& c) { return c.base < last; }));
  };
  const uint64_t most = settings_.file->MaxChunks() / kFrontPart;
  while (until != 0 && chunks_until(until) > most) {
    // The last chunk that ends before: one less at least.
    uint64_t before = 0;
    for (const SealedChunk& chunk : sealed_) {
      if (chunk.last < until) before = std::max(before, chunk.last);
    }
    until = before;
  }
  first_until_ = consumed_ = until;
  return until != 0;
}

// The number up to which every event is in a sealed chunk and belongs to no recent span. `*holder`: the lane
// whose open chunk keeps it back, if one does.
uint64_t Retention::Horizon(uint64_t sequence, Lane** holder) noexcept {
  *holder = nullptr;
  const uint64_t recent = recent_count_ > 0 ? recent_[0] : open_.first;
  uint64_t horizon = std::min({sequence, recent, settings_.sequence->load() + 1}) - 1;
  GetThreads().ForEachLane([&horizon, holder](Lane& lane) {
    const uint64_t base = lane.open_base.load();
    if (base >= horizon) return;
    horizon = base;
    *holder = &lane;
  });
  return horizon;
}

bool Retention::Progress(uint64_t sequence) noexcept {
  if (!FindFirstSpans()) return false;
  if (JoinForgotten()) return true;
  for (size_t attempt = 0; attempt <= Threads::kMaxLanes; ++attempt) {
    Lane* holder = nullptr;
    const uint64_t end = BatchEnd(Horizon(sequence, &holder));
    if (end > consumed_ && ConsumeUntil(end)) return true;
    // A thread that does nothing keeps all the others' events: its chunk ends here.
    if (holder == nullptr || !GetThreads().Steal(holder)) return false;
    if (!holder->chunk.IsOpen()) continue;
    if (holder->chunk.Seal() != FileStatus::kOk) return false;
    Sealed(holder->chunk);
    holder->chunk.Close();
  }
  return false;
}

// The last number of the next batch: the oldest few chunks are read whole. A span that is kept is never cut.
uint64_t Retention::BatchEnd(uint64_t horizon) noexcept {
  std::array<uint64_t, kBatchChunks> oldest;
  oldest.fill(UINT64_MAX);
  {
    const std::lock_guard lock(sealed_mutex_);
    for (const SealedChunk& chunk : sealed_) {
      if (chunk.last <= consumed_ || chunk.last >= oldest.back()) continue;
      oldest.back() = chunk.last;
      std::sort(oldest.begin(), oldest.end());
    }
  }
  uint64_t last = 0;
  for (const uint64_t end : oldest) last = end == UINT64_MAX ? last : end;
  uint64_t end = std::min(last, horizon);
  if (const Span* const kept = KeptAt(end); kept != nullptr) {
    end = kept->last <= horizon ? kept->last : kept->first - 1;
  }
  return end;
}

RangeWriter::Identity Retention::IdentityOf(const Span& span) const noexcept {
  return {.file = settings_.file,
          .file_id = settings_.file_id,
          .process_id = settings_.process_id,
          .first = span.first,
          .last = span.last};
}

void Retention::Note(const EventView& event, Range* range) noexcept {
  if (range->first_time_ns == 0) range->first_time_ns = event.time_ns;
  range->last_time_ns = std::max(range->last_time_ns, event.time_ns);
  if (event.number != kStepBody) return;
  const trace::Varints field = trace::ReadVarints(event.body);
  if (field[2] == 0) return;
  Span& span = range->span;
  if (span.steps == 0) span.first_step = field[1];
  const uint64_t end = std::max(span.first_step + span.steps, field[1] + 1);
  span.first_step = std::min(span.first_step, field[1]);
  span.steps = end - span.first_step;
}

bool Retention::CopyWhole(Reader* reader, Range* range) noexcept {
  RangeWriter writer(IdentityOf(range->span), &range->chunks);
  for (; reader->more && reader->event.sequence <= range->span.last; reader->Start()) {
    Note(reader->event, range);
    writer.Add(reader->event);
  }
  return writer.Finish();
}

bool Retention::CopyEffect(Reader* reader, Range* range) noexcept {
  NetEffect effect;
  bool fits = true;
  for (; reader->more && reader->event.sequence <= range->span.last; reader->Start()) {
    Note(reader->event, range);
    fits = fits && effect.Add(reader->event);
  }
  bool written = false;
  if (fits) {
    range->dropped += effect.Cancelled();
    RangeWriter writer(IdentityOf(range->span), &range->chunks);
    writer.Begin({.first_sequence = range->span.first,
                  .last_sequence = range->span.last,
                  .events = range->dropped,
                  .first_step = range->span.first_step,
                  .steps = range->span.steps,
                  .first_time_ns = range->first_time_ns,
                  .last_time_ns = range->last_time_ns});
    effect.ForEachLeft(
        [&writer](const EventView& event) { writer.Add(event, FieldsOfTheWhole(event.number)); });
    written = writer.Finish();
  }
  effect.Clear();
  return written;
}

bool Retention::ConsumeUntil(uint64_t end) noexcept {
  const uint64_t before = consumed_;
  Reader reader{.merge = ChunkMerge(settings_.file), .event = {}, .more = false};
  // What was dropped last is joined by what is dropped now.
  Range range;
  size_t replaced = 0;
  if (range_count_ > 0 && !ranges_[range_count_ - 1].whole && KeptAt(consumed_ + 1) == nullptr) {
    range = ranges_[range_count_ - 1];
    replaced = 1;
    for (const uint32_t index : range.chunks) {
      if (!reader.merge.Add(index, 0)) return false;
    }
  }
  {
    const std::lock_guard lock(sealed_mutex_);
    for (const SealedChunk& chunk : sealed_) {
      if (chunk.last <= consumed_ || chunk.base >= end) continue;
      if (!reader.merge.Add(chunk.index, consumed_)) return false;
    }
  }
  reader.Start();
  uint64_t from = replaced == 1 ? range.span.first : consumed_ + 1;
  while (from <= end) {
    if (range_count_ - replaced == kMostRanges) break;
    const Span* const kept = KeptAt(from);
    const uint64_t next = replaced == 1 ? NextKept(consumed_) : NextKept(from);
    range.chunks = {};
    range.span.first = from;
    range.span.last = kept != nullptr && replaced == 0 ? kept->last : std::min(end, next - 1);
    range.whole = kept != nullptr && replaced == 0;
    const bool copied = range.whole ? CopyWhole(&reader, &range) : CopyEffect(&reader, &range);
    if (!copied) {
      range.chunks.Free();
      break;
    }
    Replace(range_count_ - replaced, replaced, range);
    consumed_ = range.span.last;
    // At once: the next range may need the room.
    GiveBackConsumed();
    from = consumed_ + 1;
    replaced = 0;
    range = {};
  }
  ForgetBeyondBudget();
  return consumed_ > before;
}

// Puts a complete range where others stood, and gives their chunks back.
void Retention::Replace(size_t first, size_t count, const Range& by) noexcept {
  for (size_t i = first; i < first + count; ++i) {
    for (const uint32_t index : ranges_[i].chunks)
      [[maybe_unused]] const FileStatus status = settings_.file->Recycle(index);
    ranges_[i].chunks.Free();
  }
  if (count == 0) {
    std::copy_backward(ranges_.begin() + first, ranges_.begin() + range_count_,
                       ranges_.begin() + range_count_ + 1);
  } else {
    std::copy(ranges_.begin() + first + count, ranges_.begin() + range_count_, ranges_.begin() + first + 1);
  }
  range_count_ = range_count_ - count + 1;
  ranges_[first] = by;
}

void Retention::GiveBackConsumed() noexcept {
  const std::lock_guard lock(sealed_mutex_);
  size_t left = 0;
  for (const SealedChunk& chunk : sealed_) {
    if (chunk.last > consumed_) {
      sealed_[left++] = chunk;
      continue;
    }
    // What holds events of the first spans stays where it is.
    if (chunk.base < first_until_) continue;
    [[maybe_unused]] const FileStatus status = settings_.file->Recycle(chunk.index);
  }
  sealed_.Truncate(left);
}

// A span was kept whole until others had higher peaks: what is left of it is its lasting effect, as of its
// neighbours.
bool Retention::JoinForgotten() noexcept {
  for (size_t i = 0; i < range_count_; ++i) {
    if (!ranges_[i].whole || IsKept(ranges_[i].span)) continue;
    const size_t first = i > 0 && !ranges_[i - 1].whole ? i - 1 : i;
    const size_t last = i + 1 < range_count_ && !ranges_[i + 1].whole ? i + 1 : i;
    return Join(first, last);
  }
  return false;
}

bool Retention::Join(size_t first, size_t last) noexcept {
  Reader reader{.merge = ChunkMerge(settings_.file), .event = {}, .more = false};
  Range joined;
  joined.span = {
      .first = ranges_[first].span.first, .last = ranges_[last].span.last, .first_step = 0, .steps = 0};
  for (size_t i = first; i <= last; ++i) {
    const Range& range = ranges_[i];
    joined.dropped += range.dropped;
    if (joined.span.steps == 0) joined.span.first_step = range.span.first_step;
    joined.span.steps += range.span.steps;
    if (joined.first_time_ns == 0) joined.first_time_ns = range.first_time_ns;
    joined.last_time_ns = std::max(joined.last_time_ns, range.last_time_ns);
    for (size_t chunk = 0; chunk < range.chunks.Size(); ++chunk) {
      if (!reader.merge.Add(range.chunks[chunk], 0)) return false;
    }
  }
  reader.Start();
  if (!CopyEffect(&reader, &joined)) {
    joined.chunks.Free();
    return false;
  }
  Replace(first, last - first + 1, joined);
  return true;
}

}  // namespace vramtrace::record
