#include "preload/recorder/record/chunk_merge.h"

#include <algorithm>

#include "preload/trace/fields.h"

namespace vramtrace::record {
namespace {

constexpr uint32_t kThreadBody = 29;

// Number of the field with the address_delta, 0 for bodies that have none (vramtrace.proto).
uint32_t AddressField(uint32_t body) {
  switch (body) {
    case 3:   // BlockAllocate
    case 4:   // BlockFree
    case 5:   // DriverAllocate
    case 6:   // DriverFree
    case 12:  // Label
    case 25:  // HostAllocate
    case 26:  // HostFree
    case 27:  // MemoryMap
    case 28:  // MemoryUnmap
      return 1;
    case 17:  // InputTensor
      return 2;
    default:
      return 0;
  }
}

uint64_t VarintAt(std::span<const std::byte> body, uint32_t number) {
  trace::FieldCursor cursor(body);
  for (trace::Field field; cursor.Next(&field);) {
    if (field.is_varint && field.number == number) return field.value;
  }
  return 0;
}

}  // namespace

ChunkMerge::~ChunkMerge() {
  for (Source& source : sources_) file_->Release(source.memory);
  sources_.Free();
}

bool ChunkMerge::Add(uint64_t index, uint64_t after) noexcept {
  Source source{};
  source.after = after;
  if (file_->MapForReading(index, &source.memory) != trace::FileStatus::kOk) return false;
  const auto* const header = reinterpret_cast<const trace::ChunkHeader*>(source.memory.bytes);
  source.base_address = header->base_address;
  source.sequence = header->base_sequence;
  source.time_ns = header->base_time_ns;
  source.thread = header->thread;
  source.packets = header->header_bytes;
  source.committed = header->committed.load(std::memory_order_acquire);
  const bool sound = header->magic == trace::kChunkMagic && source.packets >= sizeof(trace::ChunkHeader) &&
                     source.packets + source.committed <= file_->ChunkBytes();
  if (!sound || !sources_.Push(source)) {
    file_->Release(source.memory);
    return false;
  }
  Advance(&sources_.Back());
  return true;
}

void ChunkMerge::Advance(Source* source) noexcept {
  const std::span packets(source->memory.bytes + source->packets, source->committed);
  trace::PacketCursor cursor(packets.subspan(source->offset));
  std::span<const std::byte> packet;
  while (cursor.Next(&packet)) {
    source->offset += cursor.Offset();
    cursor = trace::PacketCursor(packets.subspan(source->offset));
    const trace::PacketParts parts = trace::SplitPacket(packet);
    source->sequence += parts.sequence_delta;
    source->time_ns += parts.time_delta_ns;
    if (parts.number == kThreadBody) source->thread = static_cast<uint32_t>(VarintAt(parts.body, 1));
    if (parts.sequence_delta == 0 || source->sequence <= source->after) continue;
    EventView& head = source->head;
    head = {.sequence = source->sequence,
            .time_ns = source->time_ns,
            .thread = source->thread,
            .number = parts.number,
            .body = parts.body,
            .address = source->base_address,
            .address_field = AddressField(parts.number)};
    if (head.address_field != 0) {
      head.address += static_cast<uint64_t>(trace::DecodeZigzag(VarintAt(parts.body, head.address_field)));
    }
    return;
  }
  source->ended = true;
}

bool ChunkMerge::Next(EventView* event) noexcept {
  if (current_ != SIZE_MAX) Advance(&sources_[current_]);
  // The common case: one thread writes for a while, its next event is the next of all.
  if (current_ == SIZE_MAX || sources_[current_].ended || sources_[current_].head.sequence > current_until_) {
    current_ = SIZE_MAX;
    current_until_ = UINT64_MAX;
    for (size_t i = 0; i < sources_.Size(); ++i) {
      if (sources_[i].ended) continue;
      const uint64_t sequence = sources_[i].head.sequence;
      if (current_ == SIZE_MAX) {
        current_ = i;
      } else if (sequence < sources_[current_].head.sequence) {
        current_until_ = std::min(current_until_, sources_[current_].head.sequence);
        current_ = i;
      } else {
        current_until_ = std::min(current_until_, sequence);
      }
    }
  }
  if (current_ == SIZE_MAX) return false;
  *event = sources_[current_].head;
  return true;
}

}  // namespace vramtrace::record
