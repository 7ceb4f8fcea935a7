#include "analyzer/attribution/labels.h"

#include <algorithm>

namespace vramtrace::attribution {
namespace {

using timeline::LabelRow;
using timeline::LiveBlock;
using timeline::Snapshot;

// A block may carry several labels: a gradient that is a view of a flat buffer, a state that shares a
// parameter's storage. The one that says most about why the bytes stay comes first.
int Strength(v1::Label::Kind kind) {
  switch (kind) {
    case v1::Label::KIND_OPTIMIZER_STATE:
      return 5;
    case v1::Label::KIND_GRADIENT:
      return 4;
    case v1::Label::KIND_PARAMETER:
      return 3;
    case v1::Label::KIND_BUFFER:
      return 2;
    case v1::Label::KIND_INPUT:
      return 1;
    default:
      return 0;
  }
}

// The block that holds `address` and is alive at `sequence`; the blocks of a snapshot do not overlap.
size_t FindBlock(const Snapshot& snapshot, uint64_t address, uint64_t sequence) {
  const std::vector<LiveBlock>& blocks = snapshot.blocks;
  auto after =
      std::upper_bound(blocks.begin(), blocks.end(), address,
                       [](uint64_t value, const LiveBlock& live) { return value < live.block.address; });
  if (after == blocks.begin()) return blocks.size();
  const auto at = after - 1;
  const bool inside = address - at->block.address < at->block.bytes;
  const bool alive = at->block.sequence < sequence && (!at->freed || sequence < at->free_sequence);
  return inside && alive ? static_cast<size_t>(at - blocks.begin()) : blocks.size();
}

bool Same(const LabelRow& a, const LabelRow& b) {
  return a.kind == b.kind && a.name == b.name && a.state_key == b.state_key;
}

std::string_view OwnerOf(std::string_view parameter) {
  const size_t dot = parameter.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : parameter.substr(0, dot);
}

}  // namespace

std::vector<BlockLabels> JoinLabels(const timeline::Scan& scan, const Snapshot& snapshot) {
  std::vector<BlockLabels> labels(snapshot.blocks.size());
  for (const LabelRow& row : scan.labels) {
    if (row.device != snapshot.request.device) continue;
    const size_t i = FindBlock(snapshot, row.address, row.sequence);
    if (i == snapshot.blocks.size()) continue;
    std::vector<const LabelRow*>& rows = labels[i].rows;
    const bool known =
        std::any_of(rows.begin(), rows.end(), [&](const LabelRow* old) { return Same(*old, row); });
    if (!known) rows.push_back(&row);
  }
  for (BlockLabels& block : labels) {
    std::stable_sort(block.rows.begin(), block.rows.end(), [](const LabelRow* a, const LabelRow* b) {
      return Strength(a->kind) > Strength(b->kind);
    });
  }
  return labels;
}

ParameterSizes::ParameterSizes(const model::Tables& tables, const timeline::Scan& scan) {
  for (const LabelRow& row : scan.labels) {
    if (row.kind != v1::Label::KIND_PARAMETER) continue;
    std::vector<ParameterSize>& sizes = by_module_[std::string(OwnerOf(tables.Text(row.name)))];
    const bool known = std::any_of(sizes.begin(), sizes.end(), [&](const ParameterSize& size) {
      return size.name == row.name && size.bytes == row.bytes;
    });
    if (!known) sizes.push_back({row.name, row.dtype, row.bytes});
  }
}

const ParameterSize* ParameterSizes::Find(std::string_view module_path, uint64_t bytes, uint64_t numerator,
                                          uint64_t denominator) const {
  const auto found = by_module_.find(std::string(module_path));
  if (found == by_module_.end()) return nullptr;
  for (const ParameterSize& size : found->second) {
    if (size.bytes != 0 && size.bytes * numerator == bytes * denominator) return &size;
  }
  return nullptr;
}

}  // namespace vramtrace::attribution
