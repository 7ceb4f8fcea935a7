#include "analyzer/viewer_data/blocks.h"

#include <algorithm>

namespace vramtrace::viewer_data {

void Blocks::Add(const attribution::Life& life, KindId kind) {
  const uint64_t address = life.live.block.address;
  const auto [entry, added] = address_ids_.try_emplace(address, static_cast<uint32_t>(addresses_.size()));
  if (added) addresses_.push_back(static_cast<double>(address));
  rows_.push_back({kind, life.allocated, life.freed, entry->second});
}

void Blocks::Finish() {
  // One event allocates at most one block.
  std::sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) { return a.allocated < b.allocated; });
  address_ids_ = {};
}

std::vector<uint32_t> Blocks::Select(const Kinds& kinds, const Selection& selection) const {
  const auto [device, mode, from, to] = selection;
  std::vector<uint32_t> found;
  for (uint32_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    if (row.allocated > to) break;
    const bool ended = row.freed != kNever && row.freed <= to;
    const bool begun = row.allocated >= from;
    const bool wanted = mode == Mode::kAlive       ? !ended
                        : mode == Mode::kAllocated ? begun
                        : mode == Mode::kKept      ? begun && !ended
                        : mode == Mode::kSeen      ? row.freed >= from
                                                   : ended && row.freed >= from;
    if (wanted && kinds[row.kind].device == device) found.push_back(i);
  }
  return found;
}

void Blocks::FillBands(const Kinds& kinds, uint32_t device, Curve* curve) const {
  for (const Row& row : rows_) {
    const Kind& kind = kinds[row.kind];
    if (kind.device != device) continue;
    curve->AddLife(row.allocated, row.freed, kind.memory_class, kind.bytes, kind.block_bytes);
  }
  curve->SumLives();
}

class Blocks::Writer {
 public:
  explicit Writer(size_t rows) {
    for (auto* column : {&kind_, &allocated_, &lifetime_, &address_}) column->reserve(rows);
  }
  void Add(const Row& row) {
    kind_.push_back(row.kind);
    allocated_.push_back(row.allocated - last_);
    lifetime_.push_back(row.freed == kNever ? 0 : row.freed - row.allocated);
    address_.push_back(row.address);
    last_ = row.allocated;
  }
  size_t Finish(Columns* columns) const {
    columns->Add("block.kind", kind_);
    // Steps resemble each other in differences, not in positions: a hundredth of the size after gzip.
    columns->Add("block.allocated", allocated_, "difference");
    columns->Add("block.lifetime", lifetime_);  // 0: alive at the end
    columns->Add("block.address", address_);
    return kind_.size();
  }

 private:
  std::vector<uint32_t> kind_, allocated_, lifetime_, address_;
  Tick last_ = 0;
};

size_t Blocks::Write(const std::function<bool(Tick, Tick)>& keep, Columns* columns) const {
  Writer writer(rows_.size());
  for (const Row& row : rows_) {
    if (keep == nullptr || keep(row.allocated, row.freed)) writer.Add(row);
  }
  columns->Add("address.value", addresses_);
  return writer.Finish(columns);
}

size_t Blocks::Write(const std::vector<uint32_t>& rows, Columns* columns) const {
  Writer writer(rows.size());
  for (const uint32_t row : rows) writer.Add(rows_[row]);
  return writer.Finish(columns);
}

}  // namespace vramtrace::viewer_data
