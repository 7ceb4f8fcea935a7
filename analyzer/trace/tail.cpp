#include "analyzer/trace/tail.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace vramtrace::trace {
namespace {

struct Descriptor {
  int value = -1;
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
};

size_t ReadAt(int descriptor, uint64_t offset, std::byte* data, size_t bytes) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::pread(descriptor, data + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

ChunkFields HeaderAt(int descriptor, uint64_t offset) {
  std::byte raw[sizeof(ChunkHeader)] = {};
  const size_t got = ReadAt(descriptor, offset, raw, sizeof raw);
  return DecodeChunkFields({raw, got});
}

}  // namespace

// The header is read before the packets: what it commits was written before it.
bool TraceTail::ReadChunkAt(int descriptor, uint64_t offset, Batch* batch) {
  const ChunkFields fields = HeaderAt(descriptor, offset);
  const bool usable = fields.magic == kChunkMagic && fields.file_id == file_id_ &&
                      fields.header_bytes >= sizeof(ChunkHeader) && fields.header_bytes <= chunk_bytes_ &&
                      fields.committed <= chunk_bytes_ - fields.header_bytes;
  // Copies of what was handed out when it was written.
  if (!usable || fields.kind == ChunkKind::kKept) return false;
  Place& place = places_[offset];
  // The recorder gave the chunk back and uses its place for another one.
  const bool reused =
      place.base_time_ns != fields.base_time_ns || place.base_sequence != fields.base_sequence;
  if (reused) place = {.base_time_ns = fields.base_time_ns, .base_sequence = fields.base_sequence};
  if (place.finished) return false;
  place.finished = fields.Sealed();
  if (fields.committed <= place.read) return false;
  if (place.read == 0) {
    place.clock = {fields.base_sequence, fields.base_time_ns, fields.base_address, ThreadId{fields.thread}};
  }
  batch->bytes.resize(static_cast<size_t>(fields.committed - place.read));
  batch->bytes.resize(ReadAt(descriptor, offset + fields.header_bytes + place.read, batch->bytes.data(),
                             batch->bytes.size()));
  PacketCursor packets(batch->bytes);
  std::span<const std::byte> packet;
  while (packets.Next(&packet)) {
    Event event;
    const std::string_view bytes(reinterpret_cast<const char*>(packet.data()), packet.size());
    if (DecodePacket(bytes, &place.clock, &event) == DecodeStatus::kDecoded) batch->events.push_back(event);
  }
  place.read += packets.Offset();
  return !batch->events.empty();
}

Result<uint64_t> TraceTail::Poll(const std::function<void(const Event&)>& use) {
  const Descriptor file{::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat status {};
  if (file.value < 0 || ::fstat(file.value, &status) != 0) {
    return Error{path_, std::nullopt, fmt::format("cannot be opened: {}.", std::strerror(errno))};
  }
  if (!S_ISREG(status.st_mode)) return Error{path_, std::nullopt, "is not a regular file; expected a trace."};
  const auto size = static_cast<uint64_t>(status.st_size);
  if (size < sizeof(ChunkHeader)) return uint64_t{0};
  if (chunk_bytes_ == 0) {
    const ChunkFields first = HeaderAt(file.value, 0);
    if (first.magic == 0) return uint64_t{0};  // made and not begun
    if (first.magic != kChunkMagic || first.format_major == 0 || first.format_major > kFormatMajor ||
        first.chunk_bytes < kMinChunkBytes || first.chunk_bytes > kMaxChunkBytes) {
      return Error{path_, 0,
                   "not a trace that this vramtrace reads: expected VRTCHNK1 and format version 1."};
    }
    chunk_bytes_ = first.chunk_bytes;
    file_id_ = first.file_id;
  }
  std::vector<std::unique_ptr<Batch>> batches;
  for (uint64_t offset = 0; offset < size; offset += chunk_bytes_) {
    auto batch = std::make_unique<Batch>();
    if (ReadChunkAt(file.value, offset, batch.get())) batches.push_back(std::move(batch));
  }
  std::vector<const Event*> order;
  for (const auto& batch : batches) {
    for (const Event& event : batch->events) order.push_back(&event);
  }
  std::stable_sort(order.begin(), order.end(), [](const Event* a, const Event* b) {
    const uint64_t left = IsTable(a->kind) ? 0 : a->sequence;
    const uint64_t right = IsTable(b->kind) ? 0 : b->sequence;
    return left < right;
  });
  for (const Event* event : order) {
    last_time_ns_ = std::max(last_time_ns_, event->time_ns);
    use(*event);
  }
  return static_cast<uint64_t>(order.size());
}

}  // namespace vramtrace::trace
