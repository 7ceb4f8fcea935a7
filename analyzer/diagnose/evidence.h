#pragma once
// What the rules of diagnoses see: one device of one trace, explained at the instant that matters (where
// memory ran out, else the peak of allocated bytes), and the run step by step. Nothing but the trace and the
// catalogue.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/attribution/breakdown.h"
#include "analyzer/attribution/out_of_memory.h"
#include "analyzer/diagnose/history.h"
#include "analyzer/timeline/scan.h"
#include "analyzer/timeline/snapshot.h"
#include "analyzer/trace/trace_file.h"

namespace vramtrace::diagnose {

using attribution::MemoryClass;
using model::Phase;

// The trace as it was read.
struct Source {
  std::shared_ptr<trace::TraceFile> file;
  std::shared_ptr<const model::Tables> tables;
  std::shared_ptr<const model::StackTable> stacks;
  std::shared_ptr<const timeline::Scan> scan;
};

struct Parameter {
  std::string name;
  std::string owner;  // the module's path
  std::string dtype;
  std::vector<int64_t> shape;
  uint64_t bytes = 0;
  bool trained = false;  // a gradient or a state of it was labelled
};

// A live block at the instant.
struct LiveRow {
  const attribution::Allocation* allocation = nullptr;
  const timeline::LiveBlock* live = nullptr;
  size_t index = 0;    // into Snapshot::blocks
  uint64_t bytes = 0;  // of the tensor
  MemoryClass kind = MemoryClass::kUnknown;
  Phase phase = Phase::kScript;
  uint64_t step = 0;
  std::string function;  // qualified name of the innermost Python frame
  std::string site;      // the model's own line, else the script's
};

struct Evidence {
  Source source;
  uint32_t device = 0;
  const timeline::DeviceScan* scan = nullptr;
  bool refused = false;  // the instant is where memory ran out
  timeline::Instant at;
  timeline::Snapshot snapshot;
  attribution::Breakdown breakdown;
  std::optional<attribution::OutOfMemory> refusal;
  Phase refused_phase = Phase::kScript;
  History history;
  std::vector<LiveRow> live;  // by descending bytes
  std::vector<Parameter> parameters;
  std::vector<std::vector<int64_t>> inputs;  // shapes of the newest step that has any
  uint64_t input_step = 0;
  uint64_t batch = 0;
  uint64_t total = 0;      // of the device
  uint64_t used = 0;       // device used at the instant
  uint64_t allocated = 0;  // likewise
  bool expandable_segments = false;
  bool settings_split = false;  // max_split_size_mb is set

  // Token counts that the inputs allow: the products of their first two dimensions, and of one token less.
  [[nodiscard]] std::vector<uint64_t> TokenCounts() const;
  // What is missing for the refused request; 0: nothing was refused.
  [[nodiscard]] uint64_t Missing() const { return refusal ? refusal->missing : 0; }
  [[nodiscard]] uint64_t BytesOf(MemoryClass kind) const;
  [[nodiscard]] uint64_t Term(std::string_view key) const;  // of the identity; 0 where negative or absent
  [[nodiscard]] uint64_t TrainedBytes() const;
  [[nodiscard]] std::string_view Environment(std::string_view name) const;  // empty: not set
};

// The frames of a stack, innermost first: qualified names.
[[nodiscard]] bool HasFrame(const Evidence& evidence, model::StackId stack, std::string_view part);
[[nodiscard]] std::string FunctionOf(const model::Tables& tables, model::FrameId frame);

[[nodiscard]] Evidence Collect(const Source& source, uint32_t device);

// "transformer.h.3.attn" -> "transformer.h." and 3: a repeated block. False: no number in the path.
[[nodiscard]] bool LayerOf(std::string_view path, std::string* stem, uint64_t* number);

}  // namespace vramtrace::diagnose
