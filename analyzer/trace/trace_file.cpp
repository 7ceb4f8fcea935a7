#include "analyzer/trace/trace_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>

namespace vramtrace::trace {

TraceFile::TraceFile(std::string path, int descriptor, uint64_t size)
    : path_(std::move(path)), descriptor_(descriptor), size_(size) {}

TraceFile::~TraceFile() { ::close(descriptor_); }

Error TraceFile::MakeError(std::optional<uint64_t> offset, std::string message) const {
  return Error{path_, offset, std::move(message)};
}

size_t TraceFile::ReadAt(uint64_t offset, std::byte* data, size_t bytes) const {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::pread(descriptor_, data + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

Result<std::shared_ptr<TraceFile>> TraceFile::Open(const std::string& path) {
  // O_NONBLOCK: opening a pipe must not wait for a writer.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    return Error{path, std::nullopt, fmt::format("cannot be opened: {}.", std::strerror(errno))};
  }
  struct stat status {};
  ::fstat(descriptor, &status);
  std::shared_ptr<TraceFile> file(
      new TraceFile(path, descriptor, static_cast<uint64_t>(std::max<off_t>(0, status.st_size))));
  if (S_ISDIR(status.st_mode)) {
    return file->MakeError(std::nullopt, "is a folder; expected one trace file (*.vtrace).");
  }
  if (!S_ISREG(status.st_mode)) {
    return file->MakeError(std::nullopt, "is not a regular file; expected a trace file (*.vtrace).");
  }
  if (file->size_ == 0) {
    return file->MakeError(0, "the file is empty; expected a trace, which begins with the bytes VRTCHNK1.");
  }
  const Result<uint64_t> chunk_bytes = file->ReadFirstHeader();
  if (!chunk_bytes.ok()) return chunk_bytes.error();
  file->ReadHeaders(chunk_bytes.value());
  return file;
}

Result<uint64_t> TraceFile::ReadFirstHeader() {
  std::byte raw[sizeof(ChunkHeader)] = {};
  const size_t got = ReadAt(0, raw, sizeof(raw));
  const ChunkFields fields = DecodeChunkFields({raw, got});
  if (fields.magic != kChunkMagic) {
    return MakeError(0, "not a vramtrace trace: expected the bytes VRTCHNK1 here.");
  }
  if (got < sizeof(raw)) {
    return MakeError(
        got, fmt::format("the file ends inside its first header: {} bytes, expected at least {}.", got,
                         sizeof(raw)));
  }
  if (fields.format_major > kFormatMajor) {
    return MakeError(
        offsetof(ChunkHeader, format_major),
        fmt::format(
            "the trace has format version {}.{} and this vramtrace ({}) reads up to {}.x; analyze it with "
            "the vramtrace that recorded it or a newer one.",
            fields.format_major, fields.format_minor, VRAMTRACE_VERSION, kFormatMajor));
  }
  if (fields.format_major == 0) {
    return MakeError(offsetof(ChunkHeader, format_major),
                     fmt::format("format version 0 does not exist; expected 1 to {}.", kFormatMajor));
  }
  if (fields.chunk_bytes < kMinChunkBytes || fields.chunk_bytes > kMaxChunkBytes) {
    return MakeError(offsetof(ChunkHeader, chunk_bytes),
                     fmt::format("chunks of {} bytes; expected {} to {}.", fields.chunk_bytes, kMinChunkBytes,
                                 kMaxChunkBytes));
  }
  return fields.chunk_bytes;
}

void TraceFile::ReadHeaders(uint64_t chunk_bytes) {
  std::vector<std::byte> buffer(static_cast<size_t>(std::min(chunk_bytes, size_)));
  uint64_t file_id = 0;
  for (uint64_t offset = 0, index = 0; offset < size_; offset += chunk_bytes, ++index) {
    const size_t got = ReadAt(offset, buffer.data(), buffer.size());
    const Chunk chunk = ReadChunk({buffer.data(), got}, index);
    if (index == 0) file_id = chunk.fields.file_id;
    switch (chunk.state) {
      case ChunkState::kUnused:
        continue;
      case ChunkState::kBadMagic:
      case ChunkState::kBadGeometry:
      case ChunkState::kNewerMajor:
        statistics_.Add(Statistic::kBadChunkHeader, 1, offset);
        continue;
      case ChunkState::kShort:
        statistics_.Add(Statistic::kTruncatedFile, 1, size_);
        break;
      case ChunkState::kBadChecksum:
        statistics_.Add(Statistic::kChecksumMismatch, 1, offset);
        break;
      case ChunkState::kGood:
        break;
    }
    if (chunk.fields.file_id != file_id) {
      statistics_.Add(Statistic::kForeignChunk, 1, offset);
      continue;
    }
    chunks_.push_back({offset, index, chunk.fields});
  }
  ChooseKeptRanges();
}

// A range counts when all of its chunks are there and no larger one holds it: a process that was killed while
// it copied leaves a range without its last chunk, or an older range beside the one that replaces it.
void TraceFile::ChooseKeptRanges() {
  struct Parts {
    uint64_t count = 0;
    uint64_t last_part = UINT64_MAX;
  };
  std::map<std::pair<uint64_t, uint64_t>, Parts> ranges;  // by the first number, the largest range first
  const auto key_of = [](const ChunkFields& fields) {
    return std::pair(fields.range_first, ~fields.range_last);
  };
  for (const ChunkPlace& place : chunks_) {
    if (place.fields.kind != ChunkKind::kKept) continue;
    Parts& parts = ranges[key_of(place.fields)];
    ++parts.count;
    if ((place.fields.flags & kChunkLastPart) != 0) parts.last_part = place.fields.part;
  }
  std::set<std::pair<uint64_t, uint64_t>> chosen;
  for (const auto& [key, parts] : ranges) {
    const KeptRange range{key.first, ~key.second};
    const bool complete = parts.last_part != UINT64_MAX && parts.count == parts.last_part + 1;
    const bool held = !kept_.empty() && range.first <= kept_.back().last;
    if (!complete || held || range.last < range.first) continue;
    kept_.push_back(range);
    chosen.insert(key);
  }
  std::erase_if(chunks_, [&](const ChunkPlace& place) {
    return place.fields.kind == ChunkKind::kKept && !chosen.contains(key_of(place.fields));
  });
}

void TraceFile::ReadPackets(const ChunkPlace& place, std::vector<std::byte>* buffer) const {
  const uint64_t begin = place.offset + place.fields.header_bytes;
  const uint64_t available = begin < size_ ? size_ - begin : 0;
  buffer->resize(static_cast<size_t>(std::min(place.fields.committed, available)));
  buffer->resize(ReadAt(begin, buffer->data(), buffer->size()));
  // A recorder that still runs may have given the chunk back meanwhile: then these are another one's bytes.
  std::byte raw[sizeof(ChunkHeader)] = {};
  const ChunkFields now = DecodeChunkFields({raw, ReadAt(place.offset, raw, sizeof(raw))});
  if (now.magic != place.fields.magic || now.base_sequence != place.fields.base_sequence ||
      now.base_time_ns != place.fields.base_time_ns) {
    buffer->clear();
  }
}

}  // namespace vramtrace::trace
