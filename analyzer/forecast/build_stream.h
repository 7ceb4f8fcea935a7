#pragma once
// A trace to a stream.

#include <memory>
#include <optional>
#include <string>

#include "analyzer/forecast/stream.h"
#include "analyzer/timeline/scan.h"
#include "analyzer/trace/result.h"

namespace vramtrace::forecast {

struct StreamOptions {
  // Of which device; without one, the device with the highest peak.
  std::optional<uint32_t> device;
  // The batch of the run, where the user knows better than the inputs' shapes tell.
  uint64_t batch = 0;
};

// The requests of one device, classified and labelled, with the laws that one recording gives
// (size_laws.h). Errors: what TraceFile::Open says; a trace without blocks of PyTorch's caching allocator.
[[nodiscard]] trace::Result<Stream> BuildStream(const std::string& path, const StreamOptions& options);

// The same of a trace that other stages have read already: one more pass over its events.
[[nodiscard]] trace::Result<Stream> BuildStream(const std::shared_ptr<trace::TraceFile>& file,
                                                const std::shared_ptr<const model::Tables>& tables,
                                                const std::shared_ptr<const model::StackTable>& stacks,
                                                const timeline::Scan& scan, const StreamOptions& options);

}  // namespace vramtrace::forecast
