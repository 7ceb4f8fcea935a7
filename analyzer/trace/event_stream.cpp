#include "analyzer/trace/event_stream.h"

#include <algorithm>

namespace vramtrace::trace {
namespace {

// Among equals the chunk that comes first in the file; a table chunk is created before the events that use
// it.
bool OpensLater(const ChunkPlace& a, const ChunkPlace& b) {
  if (a.fields.base_sequence != b.fields.base_sequence)
    return a.fields.base_sequence > b.fields.base_sequence;
  return a.index > b.index;
}

}  // namespace

EventStream::EventStream(std::shared_ptr<TraceFile> file, Counting counting)
    : file_(std::move(file)), counting_(counting == Counting::kCount), waiting_(file_->chunks()) {
  std::sort(waiting_.begin(), waiting_.end(), OpensLater);
}

bool EventStream::Advance(Cursor* cursor) {
  std::span<const std::byte> packet;
  while (cursor->packets.Next(&packet)) {
    const std::string_view bytes(reinterpret_cast<const char*>(packet.data()), packet.size());
    switch (DecodePacket(bytes, &cursor->clock, &cursor->head)) {
      case DecodeStatus::kDecoded:
        return true;
      case DecodeStatus::kUnknown:
        // Its sequence number is used up all the same: it is no gap.
        if (counting_) file_->statistics().Add(Statistic::kUnknownPacket);
        cursor->head.kind = PacketKind::kNone;
        return true;
      case DecodeStatus::kMalformed:
        if (counting_) {
          const auto at = static_cast<uint64_t>(packet.data() - cursor->buffer.data());
          file_->statistics().Add(Statistic::kMalformedPacket, 1, cursor->packets_offset + at);
        }
    }
  }
  // A torn tail is expected where the file was cut, and counted there; elsewhere it is damage.
  const bool cut = cursor->packets_offset + cursor->buffer.size() >= file_->size();
  if (counting_ && cursor->packets.Torn() && !cut) {
    file_->statistics().Add(Statistic::kMalformedPacket, 1,
                            cursor->packets_offset + cursor->packets.Offset());
  }
  return false;
}

void EventStream::OpenDueChunks() {
  const auto later = [](const std::unique_ptr<Cursor>& a, const std::unique_ptr<Cursor>& b) {
    if (a->head.sequence != b->head.sequence) return a->head.sequence > b->head.sequence;
    return a->chunk_offset > b->chunk_offset;
  };
  if (current_ != nullptr) {
    // The common case by far: one thread writes for a while, its next event is the next of all.
    const bool is_next = (open_.empty() || !later(current_, open_.front())) &&
                         (waiting_.empty() || waiting_.back().fields.base_sequence > current_->head.sequence);
    if (is_next) return;
    open_.push_back(std::move(current_));
    std::push_heap(open_.begin(), open_.end(), later);
  }
  while (!waiting_.empty() &&
         (open_.empty() || waiting_.back().fields.base_sequence <= open_.front()->head.sequence)) {
    const ChunkPlace place = waiting_.back();
    waiting_.pop_back();
    auto cursor = std::make_unique<Cursor>();
    cursor->chunk_offset = place.offset;
    cursor->packets_offset = place.offset + place.fields.header_bytes;
    file_->ReadPackets(place, &cursor->buffer);
    cursor->packets = PacketCursor(cursor->buffer);
    cursor->clock = {place.fields.base_sequence, place.fields.base_time_ns, place.fields.base_address,
                     ThreadId{place.fields.thread}};
    cursor->superseded = place.fields.kind == ChunkKind::kEvents && !file_->kept().empty();
    if (!Advance(cursor.get())) continue;
    open_.push_back(std::move(cursor));
    std::push_heap(open_.begin(), open_.end(), later);
  }
  if (open_.empty()) return;
  std::pop_heap(open_.begin(), open_.end(), later);
  current_ = std::move(open_.back());
  open_.pop_back();
}

void EventStream::CountSequence(const Event& event) {
  if (!event.has_sequence) return;
  if (any_sequence_ && event.sequence > last_sequence_ + 1) {
    missing_ += event.sequence - last_sequence_ - 1;
  }
  any_sequence_ = true;
  last_sequence_ = std::max(last_sequence_, event.sequence);
}

bool EventStream::Superseded(const Cursor& cursor) {
  const std::vector<KeptRange>& kept = file_->kept();
  const uint64_t sequence = cursor.head.sequence;
  while (kept_ < kept.size() && kept[kept_].last < sequence) ++kept_;
  return kept_ < kept.size() && kept[kept_].first <= sequence;
}

// Once, at the end.
void EventStream::CountMissing() {
  if (ended_) return;
  ended_ = true;
  LoadStatistics& statistics = file_->statistics();
  if (missing_ > dropped_) statistics.Add(Statistic::kSequenceGap, missing_ - dropped_);
  if (dropped_ > 0) statistics.Add(Statistic::kDroppedEvents, dropped_);
}

const Event* EventStream::Next() {
  for (;;) {
    if (current_ != nullptr && !Advance(current_.get())) current_.reset();
    OpenDueChunks();
    if (current_ == nullptr) {
      if (counting_) CountMissing();
      return nullptr;
    }
    const Event& head = current_->head;
    if (current_->superseded && Superseded(*current_)) continue;
    if (counting_) CountSequence(head);
    if (head.kind == PacketKind::kDropped) dropped_ += head.dropped;
    if (head.kind != PacketKind::kNone) return &head;
  }
}

}  // namespace vramtrace::trace
