#include "analyzer/forecast/site_key.h"

#include <string_view>

namespace vramtrace::forecast {
namespace {

constexpr uint64_t kSeed = 0xcbf29ce484222325ULL;

// splitmix64's finalizer: every bit of both depends on every bit of the result.
uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t x = a ^ (b + 0x9e3779b97f4a7c15ULL + (a << 6) + (a >> 2));
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

uint64_t HashText(std::string_view text) {
  uint64_t hash = kSeed;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

}  // namespace

uint64_t SiteKeys::Of(const timeline::Block& block, const attribution::Allocation& explained) {
  uint64_t key = Mix(OfStack(block.stack, block.sequence), static_cast<uint64_t>(block.phase));
  key = Mix(key, HashText(explained.operator_name));
  return Mix(key, explained.has_module ? HashText(explained.module_path) : 0);
}

// A stack's modules are named once, so that its key holds for every event.
uint64_t SiteKeys::OfStack(model::StackId stack, uint64_t sequence) {
  const uint32_t raw = trace::Raw(stack);
  if (raw == 0 || raw >= tables_.stacks.size()) return kSeed;
  if (stack_keys_.empty()) stack_keys_.resize(tables_.stacks.size());
  if (stack_keys_[raw] != 0) return stack_keys_[raw];
  // Parents come before their children; a cycle or a forward reference in a damaged file ends the walk.
  std::vector<uint32_t> path{raw};
  for (uint32_t at = trace::Raw(tables_.stacks[stack].parent); at != 0 && at < path.back();
       at = trace::Raw(tables_.stacks[model::StackId{at}].parent)) {
    path.push_back(at);
    if (stack_keys_[at] != 0) break;
  }
  uint64_t key = kSeed;
  for (auto at = path.rbegin(); at != path.rend(); ++at) {
    uint64_t& known = stack_keys_[*at];
    const model::FrameId frame = tables_.stacks[model::StackId{*at}].frame;
    if (known == 0) known = IsNative(frame) ? key : Mix(key, OfFrame(frame, sequence));
    key = known;
  }
  return key;
}

bool SiteKeys::IsNative(model::FrameId frame) const {
  return tables_.frames[frame].code == model::CodeId::kNone;
}

uint64_t SiteKeys::OfFrame(model::FrameId frame, uint64_t sequence) const {
  const model::FrameRow& row = tables_.frames[frame];
  const model::CodeRow& code = tables_.codes[row.code];
  uint64_t key = Mix(HashText(tables_.Text(code.file)), HashText(tables_.Text(code.qualified_name)));
  key = Mix(key, row.line);
  if (row.module_object == 0) return key;
  const model::ModuleName* name = tables_.modules.Find(row.module_object, sequence);
  return Mix(key, name == nullptr ? 2 : HashText(tables_.Text(name->path)));
}

}  // namespace vramtrace::forecast
