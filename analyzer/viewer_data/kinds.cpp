#include "analyzer/viewer_data/kinds.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <initializer_list>

#include "analyzer/report/title.h"

namespace vramtrace::viewer_data {

size_t Kinds::Hash::operator()(const Kind& kind) const {
  uint64_t hash = 0;
  // Multiplicative mixing, as FNV does it by words.
  for (const uint64_t part :
       {uint64_t{kind.stack} << 32 | kind.forward_stack, uint64_t{kind.title} << 32 | kind.names,
        uint64_t{kind.module} << 32 | kind.module_class, uint64_t{kind.evidence} << 32 | kind.rule,
        uint64_t{kind.operator_name} << 32 | kind.shape, kind.bytes, kind.block_bytes,
        uint64_t{kind.device} << 24 | uint64_t{kind.memory_class} << 16 | uint64_t{kind.confidence} << 8 |
            kind.phase}) {
    hash = (hash ^ part) * 0x9E3779B97F4A7C15U;
    hash ^= hash >> 29;
  }
  return hash;
}

bool Kinds::Source::IsOf(const attribution::Life& life) const {
  const timeline::Block& block = life.live.block;
  const attribution::Allocation& other = life.explained;
  return filled && stack == block.stack && forward_stack == life.live.forward_stack &&
         device == life.device && phase == block.phase && block_bytes == block.bytes &&
         bytes == block.TensorBytes() && explained.verdict.memory_class == other.verdict.memory_class &&
         explained.verdict.confidence == other.verdict.confidence &&
         explained.verdict.rule == other.verdict.rule && explained.names == other.names &&
         explained.state_key == other.state_key && explained.copy_of == other.copy_of &&
         explained.dtype == other.dtype && explained.shape == other.shape &&
         explained.has_module == other.has_module && explained.module_path == other.module_path &&
         explained.module_class == other.module_class && explained.operator_name == other.operator_name &&
         explained.verdict.evidence == other.verdict.evidence;
}

// What tells a step's blocks apart: the same layer many times over differs by names and modules only.
size_t Kinds::PlaceOf(const attribution::Life& life) {
  const attribution::Allocation& explained = life.explained;
  uint64_t hash = std::hash<std::string>{}(explained.module_path);
  if (!explained.names.empty()) hash = hash * 31 + std::hash<std::string>{}(explained.names.front());
  for (const uint64_t part :
       {uint64_t{trace::Raw(life.live.block.stack)} << 32 | trace::Raw(life.live.forward_stack),
        life.live.block.TensorBytes(), static_cast<uint64_t>(explained.verdict.memory_class)}) {
    hash = (hash ^ part) * 0x9E3779B97F4A7C15U;
    hash ^= hash >> 29;
  }
  return hash % kSources;
}

KindId Kinds::Id(const attribution::Life& life) {
  if (sources_.empty()) sources_.resize(kSources);
  Source& source = sources_[PlaceOf(life)];
  if (source.IsOf(life)) return source.id;
  const Kind kind = Describe(life);
  const auto [entry, added] = ids_.try_emplace(kind, static_cast<KindId>(kinds_.size()));
  if (added) kinds_.push_back(kind);
  const timeline::Block& block = life.live.block;
  source = {life.explained,      block.stack, life.live.forward_stack, life.device, block.phase,
            block.TensorBytes(), block.bytes, entry->second,           true};
  return entry->second;
}

Kind Kinds::Describe(const attribution::Life& life) {
  const timeline::Block& block = life.live.block;
  const attribution::Allocation& explained = life.explained;
  Kind kind;
  kind.device = static_cast<uint8_t>(life.device);
  kind.memory_class = static_cast<uint8_t>(explained.verdict.memory_class);
  kind.confidence = static_cast<uint8_t>(explained.verdict.confidence);
  kind.phase = static_cast<uint8_t>(block.phase);
  kind.stack = stacks_->Id(block.stack);
  kind.forward_stack = stacks_->Id(life.live.forward_stack);
  kind.title = strings_->Id(report::TitleOf(explained));
  kind.names = strings_->Id(fmt::format("{}", fmt::join(explained.names, ", ")));
  // "has no module" and "the root, whose path is empty" differ: the root's class is never empty.
  kind.module = strings_->Id(explained.module_path);
  kind.module_class = strings_->Id(explained.has_module && explained.module_class.empty()
                                       ? std::string_view("Module")
                                       : std::string_view(explained.module_class));
  kind.evidence = strings_->Id(explained.verdict.evidence);
  kind.rule = strings_->Id(explained.verdict.rule);
  kind.operator_name = strings_->Id(explained.operator_name);
  kind.dtype = strings_->Id(explained.dtype);
  kind.shape =
      strings_->Id(explained.dtype.empty() ? "" : fmt::format("[{}]", fmt::join(explained.shape, ", ")));
  kind.bytes = block.TensorBytes();
  kind.block_bytes = block.bytes;
  return kind;
}

void Kinds::Write(Columns* columns) const {
  const auto write = [&]<typename Value>(std::string_view name, Value (*value)(const Kind&)) {
    std::vector<Value> values;
    values.reserve(kinds_.size());
    for (const Kind& kind : kinds_) values.push_back(value(kind));
    columns->Add("kind." + std::string(name), values);
  };
  write.operator()<uint8_t>("device", [](const Kind& k) { return k.device; });
  write.operator()<uint8_t>("class", [](const Kind& k) { return k.memory_class; });
  write.operator()<uint8_t>("confidence", [](const Kind& k) { return k.confidence; });
  write.operator()<uint8_t>("phase", [](const Kind& k) { return k.phase; });
  write.operator()<uint32_t>("stack", [](const Kind& k) { return k.stack; });
  write.operator()<uint32_t>("forward_stack", [](const Kind& k) { return k.forward_stack; });
  write.operator()<uint32_t>("title", [](const Kind& k) { return k.title; });
  write.operator()<uint32_t>("names", [](const Kind& k) { return k.names; });
  write.operator()<uint32_t>("module", [](const Kind& k) { return k.module; });
  write.operator()<uint32_t>("module_class", [](const Kind& k) { return k.module_class; });
  write.operator()<uint32_t>("evidence", [](const Kind& k) { return k.evidence; });
  write.operator()<uint32_t>("rule", [](const Kind& k) { return k.rule; });
  write.operator()<uint32_t>("operator", [](const Kind& k) { return k.operator_name; });
  write.operator()<uint32_t>("dtype", [](const Kind& k) { return k.dtype; });
  write.operator()<uint32_t>("shape", [](const Kind& k) { return k.shape; });
  write.operator()<double>("bytes", [](const Kind& k) { return static_cast<double>(k.bytes); });
  write.operator()<double>("block_bytes", [](const Kind& k) { return static_cast<double>(k.block_bytes); });
}

}  // namespace vramtrace::viewer_data
