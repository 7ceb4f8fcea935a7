#include "analyzer/report/views.h"

#include <algorithm>
#include <map>
#include <string>

#include "analyzer/attribution/segment_map.h"
#include "analyzer/model/stack_facts.h"
#include "analyzer/report/title.h"

namespace vramtrace::report {
namespace {

using attribution::Allocation;
using attribution::Breakdown;
using attribution::MemoryClass;
using timeline::Block;
using timeline::LiveBlock;
using timeline::Snapshot;

std::string_view OwnerOf(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
}

// The module whose memory it is: the one that owns the named tensor, else the one that allocated.
std::string_view ModuleOf(const Allocation& allocation) {
  if (!allocation.names.empty()) return OwnerOf(allocation.names.front());
  return allocation.module_path;
}

uint64_t AgeOf(const Snapshot& snapshot, const Block& block) {
  const uint64_t now = snapshot.request.instant.step;
  return now - std::min(now, block.step);
}

void AddToRow(MemoryClass memory_class, uint64_t bytes, v1::ModuleRow* row) {
  row->set_subtree(row->subtree() + bytes);
  row->set_blocks(row->blocks() + 1);
  switch (memory_class) {
    case MemoryClass::kWeight:
    case MemoryClass::kBuffer:
      return row->set_weights(row->weights() + bytes);
    case MemoryClass::kGradient:
      return row->set_gradients(row->gradients() + bytes);
    case MemoryClass::kOptimizerState:
      return row->set_optimizer_state(row->optimizer_state() + bytes);
    case MemoryClass::kActivation:
      return row->set_activations(row->activations() + bytes);
    default:
      return row->set_others(row->others() + bytes);
  }
}

class ModuleTree {
 public:
  void Add(const Allocation& allocation, uint64_t bytes) {
    const std::string_view path = ModuleOf(allocation);
    AddTo("", allocation, bytes, path.empty());
    for (size_t end = 0; end < path.size();) {
      end = path.find('.', end + 1);
      if (end == std::string_view::npos) end = path.size();
      AddTo(path.substr(0, end), allocation, bytes, end == path.size());
    }
  }

  void Write(v1::Views* out) {
    if (!nodes_.empty()) Write("", 0, out);
  }

 private:
  void AddTo(std::string_view path, const Allocation& allocation, uint64_t bytes, bool own) {
    v1::ModuleRow& row = Node(path);
    AddToRow(allocation.verdict.memory_class, bytes, &row);
    if (!own) return;
    row.set_own(row.own() + bytes);
    if (allocation.names.empty() && !allocation.module_class.empty()) {
      row.set_class_(allocation.module_class);
    }
  }

  v1::ModuleRow& Node(std::string_view path) {
    const auto [entry, added] = nodes_.try_emplace(std::string(path));
    if (!added) return entry->second;
    entry->second.set_path(entry->first);
    if (!path.empty()) children_[std::string(OwnerOf(path))].push_back(entry->first);
    return entry->second;
  }

  // A hostile name may have thousands of dots: a stack of our own instead of recursion.
  void Write(const std::string& root, uint32_t depth, v1::Views* out) {
    std::vector<std::pair<std::string, uint32_t>> left = {{root, depth}};
    while (!left.empty()) {
      const auto [path, level] = left.back();
      left.pop_back();
      v1::ModuleRow* row = out->add_modules();
      *row = nodes_.at(path);
      row->set_depth(level);
      std::vector<std::string>& below = children_[path];
      // The last is written first.
      std::stable_sort(below.begin(), below.end(), [this](const std::string& a, const std::string& b) {
        return nodes_.at(a).subtree() < nodes_.at(b).subtree();
      });
      for (const std::string& child : below) left.emplace_back(child, level + 1);
    }
  }

  std::map<std::string, v1::ModuleRow> nodes_;
  std::map<std::string, std::vector<std::string>> children_;
};

class Tensors {
 public:
  void Add(const Allocation& allocation, uint64_t bytes) {
    const bool copy = !allocation.copy_of.empty();
    if (allocation.names.empty() && !copy) return;
    const std::string& name = copy ? allocation.copy_of : allocation.names.front();
    v1::TensorRow& row = rows_[name];
    row.set_name(name);
    if (copy) return row.set_copies(row.copies() + bytes);
    switch (allocation.verdict.memory_class) {
      case MemoryClass::kGradient:
        return row.set_gradient(row.gradient() + bytes);
      case MemoryClass::kOptimizerState:
        return row.set_optimizer_state(row.optimizer_state() + bytes);
      default:
        return row.set_weight(row.weight() + bytes);
    }
  }

  void Write(v1::Views* out) const {
    for (const auto& entry : rows_) *out->add_tensors() = entry.second;
    std::stable_sort(out->mutable_tensors()->begin(), out->mutable_tensors()->end(),
                     [](const v1::TensorRow& a, const v1::TensorRow& b) { return Sum(a) > Sum(b); });
  }

 private:
  static uint64_t Sum(const v1::TensorRow& row) {
    return row.weight() + row.gradient() + row.optimizer_state() + row.copies();
  }
  std::map<std::string, v1::TensorRow> rows_;
};

class Stacks {
 public:
  explicit Stacks(const model::Tables& tables) : tables_(tables) {}

  void Add(const LiveBlock& live, uint64_t bytes) {
    // A backward allocation has no Python frames of its own.
    const bool of_forward = live.forward_stack != model::StackId::kNone;
    v1::StackRow& row = rows_[{of_forward ? live.forward_stack : live.block.stack, of_forward}];
    row.set_bytes(row.bytes() + bytes);
    row.set_blocks(row.blocks() + 1);
  }

  void Write(v1::Views* out) const {
    for (const auto& [key, counted] : rows_) {
      v1::StackRow* row = out->add_stacks();
      *row = counted;
      row->set_of_forward(key.second);
      for (model::StackId id = key.first; id != model::StackId::kNone; id = tables_.stacks[id].parent) {
        const model::FrameId frame = tables_.stacks[id].frame;
        if (tables_.frames[frame].code == model::CodeId::kNone) continue;
        if (!model::IsTorchOrStandard(tables_, frame))
          row->add_own(static_cast<uint32_t>(row->frames_size()));
        row->add_frames(model::FrameText(tables_, frame));
      }
      std::reverse(row->mutable_frames()->begin(), row->mutable_frames()->end());
      for (uint32_t& index : *row->mutable_own()) {
        index = static_cast<uint32_t>(row->frames_size()) - 1 - index;
      }
    }
    std::stable_sort(out->mutable_stacks()->begin(), out->mutable_stacks()->end(),
                     [](const v1::StackRow& a, const v1::StackRow& b) { return a.bytes() > b.bytes(); });
  }

 private:
  const model::Tables& tables_;
  std::map<std::pair<model::StackId, bool>, v1::StackRow> rows_;
};

class Counted {
 public:
  void Add(uint64_t value, uint64_t bytes) {
    v1::CountedRow& row = rows_[value];
    row.set_value(value);
    row.set_bytes(row.bytes() + bytes);
    row.set_blocks(row.blocks() + 1);
  }
  using Rows = google::protobuf::RepeatedPtrField<v1::CountedRow>;
  void Write(Rows* out) const {
    for (const auto& entry : rows_) *out->Add() = entry.second;
  }

 private:
  std::map<uint64_t, v1::CountedRow> rows_;
};

void WriteLibraries(const model::Tables& tables, const Snapshot& snapshot, v1::Views* out) {
  std::map<std::pair<std::string, bool>, v1::LibraryRow> rows;
  const auto add = [&](const timeline::Segment& segment) {
    const std::string_view caller = tables.Text(segment.caller);
    v1::LibraryRow& row = rows[{caller.empty() ? "unknown" : std::string(caller), segment.caching}];
    row.set_bytes(row.bytes() + segment.bytes);
    row.set_count(row.count() + 1);
  };
  for (const auto& entry : snapshot.segments) add(entry.second);
  for (const auto& entry : snapshot.physical) add(entry.second);
  for (auto& [key, row] : rows) {
    row.set_library(key.first);
    row.set_caching_allocator(key.second);
    *out->add_libraries() = row;
  }
  std::stable_sort(out->mutable_libraries()->begin(), out->mutable_libraries()->end(),
                   [](const v1::LibraryRow& a, const v1::LibraryRow& b) { return a.bytes() > b.bytes(); });
}

void WriteSegments(const Snapshot& snapshot, const std::vector<const Allocation*>& by_block, v1::Views* out) {
  constexpr size_t kMostPins = 4;
  for (const attribution::SegmentRange& range : attribution::MapSegments(snapshot)) {
    v1::SegmentRow* row = out->add_segments();
    row->set_address(range.begin);
    row->set_bytes(range.end - range.begin);
    row->set_small_pool(range.small);
    row->set_live_bytes(range.live_bytes);
    row->set_live_blocks(range.blocks.size());
    row->set_holes(range.holes);
    row->set_largest_hole(range.largest_hole);
    std::vector<size_t> oldest = range.blocks;
    const auto end = oldest.begin() + static_cast<ptrdiff_t>(std::min(kMostPins, oldest.size()));
    std::partial_sort(oldest.begin(), end, oldest.end(), [&](size_t a, size_t b) {
      return snapshot.blocks[a].block.sequence < snapshot.blocks[b].block.sequence;
    });
    for (auto block = oldest.begin(); block != end; ++block) {
      v1::Pin* pin = row->add_pins();
      const Allocation& allocation = *by_block[*block];
      pin->set_address(snapshot.blocks[*block].block.address);
      pin->set_bytes(snapshot.blocks[*block].block.bytes);
      pin->set_class_(std::string(KeyOf(allocation.verdict.memory_class)));
      pin->set_title(TitleOf(allocation));
      pin->set_age(AgeOf(snapshot, snapshot.blocks[*block].block));
    }
  }
}

}  // namespace

void FillViews(const model::Tables& tables, const Snapshot& snapshot, const Breakdown& breakdown,
               v1::Views* out) {
  ModuleTree modules;
  Tensors tensors;
  Stacks stacks(tables);
  Counted sizes;
  Counted ages;
  std::vector<const Allocation*> by_block(snapshot.blocks.size());
  for (const Allocation& allocation : breakdown.allocations) {
    const LiveBlock& live = snapshot.blocks[allocation.block];
    const uint64_t bytes = live.block.TensorBytes();
    by_block[allocation.block] = &allocation;
    modules.Add(allocation, bytes);
    tensors.Add(allocation, bytes);
    stacks.Add(live, bytes);
    sizes.Add(bytes, bytes);
    ages.Add(AgeOf(snapshot, live.block), bytes);
  }
  modules.Write(out);
  tensors.Write(out);
  stacks.Write(out);
  sizes.Write(out->mutable_sizes());
  std::stable_sort(out->mutable_sizes()->begin(), out->mutable_sizes()->end(),
                   [](const v1::CountedRow& a, const v1::CountedRow& b) { return a.bytes() > b.bytes(); });
  ages.Write(out->mutable_ages());
  WriteLibraries(tables, snapshot, out);
  WriteSegments(snapshot, by_block, out);
}

}  // namespace vramtrace::report
