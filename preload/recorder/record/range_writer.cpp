#include "preload/recorder/record/range_writer.h"

namespace vramtrace::record {

using trace::FileStatus;

RangeWriter::~RangeWriter() { chunk_.Close(); }

bool RangeWriter::Open(uint64_t sequence, uint64_t time_ns, uint32_t thread, uint64_t address) noexcept {
  if (chunk_.IsOpen()) {
    if (chunk_.Seal() != FileStatus::kOk) return false;
    chunk_.Close();
  }
  trace::ChunkMemory memory;
  if (identity_.file->Allocate(&memory) != FileStatus::kOk) return false;
  const auto part = static_cast<uint32_t>(chunks_->Size());
  const trace::ChunkIdentity identity{.kind = trace::ChunkKind::kKept,
                                      .thread = thread,
                                      .process_id = identity_.process_id,
                                      .chunk_bytes = identity_.file->ChunkBytes(),
                                      .file_id = identity_.file_id,
                                      .base_time_ns = time_ns,
                                      .base_sequence = sequence - 1,
                                      .base_address = address,
                                      .range_first = identity_.first,
                                      .range_last = identity_.last,
                                      .part = part};
  thread_ = thread;
  // Known before it is used: whatever happens now, it is given back.
  const bool known = chunks_->Push(static_cast<uint32_t>(memory.index));
  return chunk_.Open(memory, identity) == FileStatus::kOk && known;
}

bool RangeWriter::Prepare(uint64_t sequence, uint64_t time_ns, uint32_t thread, uint64_t address) noexcept {
  if (failed_) return false;
  if (!chunk_.IsOpen() || chunk_.Room() < 2 * trace::kEventBufferBytes) {
    failed_ = !Open(sequence, time_ns, thread, address);
    if (failed_) return false;
  }
  if (thread_ == thread) return true;
  std::byte buffer[trace::kEventBufferBytes];
  const trace::PacketStamp stamp = chunk_.Stamp(0, time_ns);
  failed_ = chunk_.Append(trace::EncodePacket(stamp, trace::ThreadPacket{.id = thread}, buffer), stamp) !=
            FileStatus::kOk;
  thread_ = thread;
  return !failed_;
}

void RangeWriter::Begin(const trace::DroppedPacket& dropped) noexcept {
  if (!Prepare(identity_.first, dropped.first_time_ns, 1, 0)) return;
  std::byte buffer[trace::kEventBufferBytes];
  const trace::PacketStamp stamp = chunk_.Stamp(0, dropped.first_time_ns);
  failed_ = chunk_.Append(trace::EncodePacket(stamp, dropped, buffer), stamp) != FileStatus::kOk;
}

void RangeWriter::Add(const EventView& event, uint32_t left_out) noexcept {
  if (!Prepare(event.sequence, event.time_ns, event.thread, event.address)) return;
  std::byte buffer[2 * trace::kEventBufferBytes];
  const trace::PacketStamp stamp = chunk_.Stamp(event.sequence, event.time_ns);
  const trace::CopiedBody copy{.number = event.number,
                               .body = event.body,
                               .address_field = event.address_field,
                               .address_delta = chunk_.AddressDelta(event.address),
                               .left_out = left_out};
  const std::span<const std::byte> bytes = trace::EncodeCopy(stamp, copy, buffer);
  failed_ = bytes.empty() || bytes.size() > chunk_.Room() || chunk_.Append(bytes, stamp) != FileStatus::kOk;
}

bool RangeWriter::Finish() noexcept {
  if (!failed_ && !chunk_.IsOpen()) failed_ = !Open(identity_.first, 0, 1, 0);
  if (!failed_) failed_ = chunk_.Seal(trace::kChunkLastPart) != FileStatus::kOk;
  chunk_.Close();
  if (failed_) Undo();
  return !failed_;
}

void RangeWriter::Undo() noexcept {
  for (const uint32_t index : *chunks_)
    [[maybe_unused]] const FileStatus status = identity_.file->Recycle(index);
  chunks_->Clear();
}

}  // namespace vramtrace::record
