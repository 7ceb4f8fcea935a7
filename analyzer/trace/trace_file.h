#pragma once
// A trace file, opened and checked, and its events in the order in which they happened.
//
// The file is read chunk by chunk with pread: memory is one chunk for every thread that wrote at the same
// time, whatever the file's size, and a file that another process truncates gives a short read, not a signal.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "analyzer/trace/decode.h"
#include "analyzer/trace/event.h"
#include "analyzer/trace/load_statistics.h"
#include "analyzer/trace/result.h"
#include "preload/trace/chunk.h"
#include "preload/trace/chunk_reader.h"

namespace vramtrace::trace {

// Where a usable chunk lies.
struct ChunkPlace {
  uint64_t offset = 0;  // of its header in the file
  uint64_t index = 0;
  ChunkFields fields;
};

// A part of the sequence that chunks of kind kKept stand for.
struct KeptRange {
  uint64_t first = 0;
  uint64_t last = 0;
};

class TraceFile {
 public:
  // Opens `path`, reads every chunk's header and checks the checksums. What is wrong with single chunks goes
  // to statistics(); an error is what leaves nothing to read: no such file, a folder, an empty file, not a
  // trace, a newer major.
  [[nodiscard]] static Result<std::shared_ptr<TraceFile>> Open(const std::string& path);

  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] uint64_t size() const { return size_; }
  [[nodiscard]] const std::vector<ChunkPlace>& chunks() const { return chunks_; }
  // In order and apart. Events of other chunks of events with these numbers are copies that a killed process
  // did not come to take out.
  [[nodiscard]] const std::vector<KeptRange>& kept() const { return kept_; }
  [[nodiscard]] LoadStatistics& statistics() { return statistics_; }
  [[nodiscard]] const LoadStatistics& statistics() const { return statistics_; }

  // Fills `buffer` with the committed packets of a chunk; fewer bytes where the file became shorter.
  void ReadPackets(const ChunkPlace& place, std::vector<std::byte>* buffer) const;

 private:
  TraceFile(std::string path, int descriptor, uint64_t size);

  [[nodiscard]] Result<uint64_t> ReadFirstHeader();  // answers chunk_bytes
  void ReadHeaders(uint64_t chunk_bytes);
  void ChooseKeptRanges();
  [[nodiscard]] size_t ReadAt(uint64_t offset, std::byte* data, size_t bytes) const;
  [[nodiscard]] Error MakeError(std::optional<uint64_t> offset, std::string message) const;

  std::string path_;
  int descriptor_;
  uint64_t size_;
  std::vector<ChunkPlace> chunks_;
  std::vector<KeptRange> kept_;
  LoadStatistics statistics_;
};

}  // namespace vramtrace::trace
