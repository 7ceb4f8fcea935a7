#include "preload/trace/chunk_writer.h"

#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <cstring>

#include "preload/trace/crc32c.h"

namespace vramtrace::trace {

ChunkHeader* ChunkWriter::Header() const noexcept { return reinterpret_cast<ChunkHeader*>(memory_.bytes); }

FileStatus ChunkWriter::Open(const ChunkMemory& memory, const ChunkIdentity& identity) noexcept {
  memory_ = memory;
  chunk_bytes_ = identity.chunk_bytes;
  cursor_ = memory.bytes + sizeof(ChunkHeader);
  limit_ = memory.bytes + identity.chunk_bytes;
  committed_ = 0;
  last_sequence_ = identity.base_sequence;
  last_time_ns_ = identity.base_time_ns;
  base_address_ = identity.base_address;

  ChunkHeader* const header = Header();
  header->format_major = kFormatMajor;
  header->format_minor = kFormatMinor;
  header->header_bytes = sizeof(ChunkHeader);
  header->kind = identity.kind;
  header->chunk_bytes = identity.chunk_bytes;
  header->index = memory.index;
  header->committed.store(0, std::memory_order_relaxed);
  header->flags.store(0, std::memory_order_relaxed);
  header->checksum = 0;
  header->thread = identity.thread;
  header->process_id = identity.process_id;
  header->base_time_ns = identity.base_time_ns;
  header->last_time_ns.store(identity.base_time_ns, std::memory_order_relaxed);
  header->base_sequence = identity.base_sequence;
  header->base_address = identity.base_address;
  header->file_id = identity.file_id;
  header->range_first = identity.range_first;
  header->range_last = identity.range_last;
  header->part = identity.part;
  __atomic_store_n(&header->magic, kChunkMagic, __ATOMIC_RELEASE);
  if (memory_.file == nullptr) return FileStatus::kOk;
  return memory_.file->WriteThrough(memory_, 0, sizeof(ChunkHeader));
}

FileStatus ChunkWriter::MoveInto(const ChunkMemory& memory, uint32_t process_id) noexcept {
  const ChunkMemory old = memory_;
  const auto* const from = Header();
  ChunkIdentity identity{.kind = from->kind,
                         .thread = from->thread,
                         .process_id = process_id,
                         .chunk_bytes = from->chunk_bytes,
                         .file_id = from->file_id,
                         .base_time_ns = from->base_time_ns,
                         .base_sequence = from->base_sequence,
                         .base_address = from->base_address};
  const uint64_t committed = committed_;
  const uint64_t last_sequence = last_sequence_;
  const uint64_t last_time_ns = last_time_ns_;
  FileStatus status = Open(memory, identity);
  if (status == FileStatus::kOk) {
    std::memcpy(cursor_, old.bytes + sizeof(ChunkHeader), committed);
    cursor_ += committed;
    committed_ = committed;
    last_sequence_ = last_sequence;
    last_time_ns_ = last_time_ns;
    Header()->last_time_ns.store(last_time_ns, std::memory_order_relaxed);
    Header()->committed.store(committed, std::memory_order_release);
    status = memory_.file->WriteThrough(memory_, sizeof(ChunkHeader), committed);
    if (status == FileStatus::kOk) status = memory_.file->WriteThrough(memory_, 0, sizeof(ChunkHeader));
  }
  munmap(old.bytes, chunk_bytes_);
  return status;
}

FileStatus ChunkWriter::Append(std::span<const std::byte> packet, const PacketStamp& stamp) noexcept {
  std::memcpy(cursor_, packet.data(), packet.size());
  last_sequence_ += stamp.sequence_delta;
  last_time_ns_ += stamp.time_delta_ns;
  ChunkHeader* const header = Header();
  header->last_time_ns.store(last_time_ns_, std::memory_order_relaxed);
  const auto offset = static_cast<size_t>(cursor_ - memory_.bytes);
  cursor_ += packet.size();
  committed_ += packet.size();
  header->committed.store(committed_, std::memory_order_release);
  if (memory_.file == nullptr || !memory_.file->Plain()) return FileStatus::kOk;
  const FileStatus status = memory_.file->WriteThrough(memory_, offset, packet.size());
  if (status != FileStatus::kOk) return status;
  return memory_.file->WriteThrough(memory_, 0, sizeof(ChunkHeader));
}

uint64_t ChunkWriter::BaseSequence() const noexcept { return Header()->base_sequence; }

FileStatus ChunkWriter::Seal(uint32_t also) noexcept {
  ChunkHeader* const header = Header();
  header->checksum = Crc32c(0, memory_.bytes + sizeof(ChunkHeader), committed_);
  header->flags.fetch_or(kChunkSealed | also, std::memory_order_release);
  if (memory_.file == nullptr) return FileStatus::kOk;
  return memory_.file->WriteThrough(memory_, 0, sizeof(ChunkHeader));
}

void ChunkWriter::Close() noexcept {
  if (!IsOpen()) return;
  if (memory_.file != nullptr) {
    memory_.file->Release(memory_);
  } else {
    munmap(memory_.bytes, chunk_bytes_);
  }
  memory_ = {};
  cursor_ = limit_ = nullptr;
}

uint64_t NewFileId() noexcept {
  uint64_t id = 0;
  if (getrandom(&id, sizeof(id), GRND_NONBLOCK) != static_cast<ssize_t>(sizeof(id)) || id == 0) {
    // Early in boot there may be no entropy yet: a clock and a process id tell files apart as well.
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    id = static_cast<uint64_t>(now.tv_sec) * 1'000'000'007U ^ static_cast<uint64_t>(now.tv_nsec) << 20 ^
         static_cast<uint64_t>(getpid());
  }
  return id;
}

std::byte* MapUnfiledChunk(uint64_t chunk_bytes) noexcept {
  void* const bytes = mmap(nullptr, chunk_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return bytes == MAP_FAILED ? nullptr : static_cast<std::byte*>(bytes);
}

}  // namespace vramtrace::trace
