#pragma once
// Every block of a trace: its kind, its place, and when it lived. 16 bytes each, so that those of a trace of
// tens of millions of events are held in memory.

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyzer/viewer_data/columns.h"
#include "analyzer/viewer_data/curve.h"
#include "analyzer/viewer_data/kinds.h"

namespace vramtrace::viewer_data {

// Which blocks a question is about; see viewer/src/data/live.ts, which asks the same of the page's own rows.
enum class Mode : uint8_t {
  kAlive,      // at `to`
  kAllocated,  // between `from` and `to`, both inclusive
  kKept,       // likewise, and alive at `to`
  kFreed,      // between `from` and `to`
  kSeen,       // alive at any time between `from` and `to`, or ended in it
};

struct Selection {
  uint32_t device = 0;
  Mode mode = Mode::kAlive;
  Tick from = 0;
  Tick to = 0;
};

class Blocks {
 public:
  void Add(const attribution::Life& life, KindId kind);
  // After the last block: sorts by allocation.
  void Finish();

  [[nodiscard]] size_t size() const { return rows_.size(); }
  // Rows of a selection, in order of their allocation.
  [[nodiscard]] std::vector<uint32_t> Select(const Kinds& kinds, const Selection& selection) const;
  [[nodiscard]] KindId KindOf(uint32_t row) const { return rows_[row].kind; }

  // What the classes of `device` hold at each of the curve's buckets.
  void FillBands(const Kinds& kinds, uint32_t device, Curve* curve) const;

  // Columns "block.*" of the rows that `keep` wants; nullptr: of all. Returns how many.
  size_t Write(const std::function<bool(Tick allocated, Tick freed)>& keep, Columns* columns) const;
  size_t Write(const std::vector<uint32_t>& rows, Columns* columns) const;

 private:
  struct Row {
    KindId kind = 0;
    Tick allocated = 0;
    Tick freed = kNever;
    uint32_t address = 0;  // in addresses_
  };
  class Writer;

  std::vector<Row> rows_;
  std::vector<double> addresses_;
  std::unordered_map<uint64_t, uint32_t> address_ids_;
};

}  // namespace vramtrace::viewer_data
