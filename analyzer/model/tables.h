#pragma once
// The interned tables of a trace and the few packets that say what process it is from. Bounded by the file's
// size; everything else of a trace is streamed.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analyzer/trace/ids.h"
#include "analyzer/trace/trace_file.h"
#include "preload/trace/vramtrace.pb.h"

namespace vramtrace::model {

using trace::BinaryId;
using trace::CodeId;
using trace::DeviceIndex;
using trace::FrameId;
using trace::StackId;
using trace::StringId;
using trace::ThreadId;

// A table whose ids are dense from 1. Asking for an id that is not defined answers an empty row, so that a
// trace with holes still reads.
template <typename Id, typename Row>
class Table {
 public:
  // False when the id is 0 or above `limit` (hostile: it would reserve memory), or defined already.
  enum class Outcome { kAdded, kRepeated, kBadId };
  Outcome Add(uint32_t id, Row row, uint32_t limit) {
    if (id == 0 || id > limit) return Outcome::kBadId;
    if (id >= rows_.size()) {
      rows_.resize(id + 1);
      defined_.resize(id + 1);
    }
    if (defined_[id]) return Outcome::kRepeated;
    rows_[id] = std::move(row);
    defined_[id] = true;
    return Outcome::kAdded;
  }
  [[nodiscard]] const Row& operator[](Id id) const {
    const uint32_t raw = trace::Raw(id);
    return raw < rows_.size() ? rows_[raw] : rows_[0];
  }
  [[nodiscard]] bool Has(Id id) const {
    const uint32_t raw = trace::Raw(id);
    return raw < rows_.size() && defined_[raw];
  }
  // One past the largest id; row 0 is the empty row.
  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(rows_.size()); }

 private:
  std::vector<Row> rows_{1};
  std::vector<bool> defined_{false};
};

struct CodeRow {
  StringId file{};
  StringId qualified_name{};
  uint32_t first_line = 0;
};

struct FrameRow {
  CodeId code{};  // kNone for a native frame
  uint32_t line = 0;
  uint64_t module_object = 0;
  uint64_t pc = 0;
  BinaryId binary{};
};

struct StackRow {
  StackId parent{};
  FrameId frame{};
};

struct BinaryRow {
  StringId path{};
  std::string build_id;
  uint64_t load_bias = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
};

// A name of an nn.Module object from `sequence` on.
struct ModuleName {
  uint64_t sequence = 0;
  StringId path{};
  StringId class_name{};
  uint64_t parent = 0;
};

class ModuleTable {
 public:
  void Add(uint64_t object, ModuleName name) { by_object_[object].push_back(name); }
  // Once after the last Add(): chunks need not lie in the order of their events.
  void Sort();
  // The newest name at `sequence`; where the object was named later only, its first one. nullptr: never
  // named.
  [[nodiscard]] const ModuleName* Find(uint64_t object, uint64_t sequence) const;
  [[nodiscard]] bool empty() const { return by_object_.empty(); }
  [[nodiscard]] const std::unordered_map<uint64_t, std::vector<ModuleName>>& all() const {
    return by_object_;
  }

 private:
  std::unordered_map<uint64_t, std::vector<ModuleName>> by_object_;
};

// What a step took on a device, as the recorder counted it: also of steps whose events were dropped.
struct StepSummaryRow {
  uint64_t first_step = 0;
  uint64_t steps = 0;
  uint32_t device = 0;
  uint64_t peak = 0;
  uint64_t low = 0;
  uint64_t reserved = 0;
  uint64_t driver = 0;
  uint64_t retries = 0;
};

// A part of the sequence of which only the lasting effect is in the trace.
struct DroppedRow {
  uint64_t first_sequence = 0;
  uint64_t last_sequence = 0;
  uint64_t events = 0;
  uint64_t first_step = 0;
  uint64_t steps = 0;
};

struct Tables {
  Table<StringId, std::string> strings;
  Table<CodeId, CodeRow> codes;
  Table<FrameId, FrameRow> frames;
  Table<StackId, StackRow> stacks;
  Table<BinaryId, BinaryRow> binaries;
  ModuleTable modules;

  v1::Process process;  // merged: the newest field wins
  std::map<uint32_t, v1::Device> devices;
  std::map<std::string, v1::Feature> features;  // by name; the newest wins
  std::vector<v1::Loss> losses;
  std::vector<StepSummaryRow> step_summaries;  // in the order of steps
  std::vector<DroppedRow> dropped;             // in the order of the sequence
  v1::Trailer trailer;
  bool has_trailer = false;

  [[nodiscard]] std::string_view Text(StringId id) const { return strings[id]; }
  // The device is vramtrace's simulated one: the process says so, or the device's own identity does.
  [[nodiscard]] bool Simulated(uint32_t device) const;
};

// Reads every chunk of the file once for its tables. Skipped entries go to the file's statistics.
[[nodiscard]] std::shared_ptr<const Tables> ReadTables(trace::TraceFile& file);

}  // namespace vramtrace::model
