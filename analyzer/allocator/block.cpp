#include "analyzer/allocator/block.h"

namespace vramtrace::allocator {

Block* BlockArena::New() {
  Block* block = nullptr;
  if (spare_.empty()) {
    block = &records_.emplace_back();
    block->index = static_cast<std::uint32_t>(records_.size() - 1);
  } else {
    block = spare_.back();
    spare_.pop_back();
  }
  block->in_use = true;
  return block;
}

void BlockArena::Delete(Block* block) {
  const std::uint32_t index = block->index;
  const std::uint32_t generation = block->generation + 1;
  *block = Block{};
  block->index = index;
  block->generation = generation;
  spare_.push_back(block);
}

Block* BlockArena::Find(BlockId id) {
  const auto value = static_cast<std::uint64_t>(id);
  const std::uint64_t index = value & 0xffffffff;
  if (index >= records_.size()) return nullptr;
  Block& block = records_[index];
  return block.allocated && block.generation == value >> 32 ? &block : nullptr;
}

}  // namespace vramtrace::allocator
