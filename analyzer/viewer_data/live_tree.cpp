#include "analyzer/viewer_data/live_tree.h"

#include <algorithm>
#include <map>

namespace vramtrace::viewer_data {
namespace {

struct Step {
  std::string label;
  std::string detail;
};

class Grower {
 public:
  explicit Grower(const ViewerData& data) : data_(data) { nodes_.push_back({}); }

  void Add(const Kind& kind, size_t count) {
    Count(kind, count, 0);
    size_t at = 0;
    for (const Step& step : PathOf(kind)) {
      const auto [child, added] = children_.try_emplace({at, step.label + '\n' + step.detail}, nodes_.size());
      if (added) {
        nodes_.push_back({step.label, step.detail, 0, 0, {}, {}});
        nodes_[at].children.push_back(child->second);
      }
      at = child->second;
      Count(kind, count, at);
    }
  }

  std::vector<LiveNode> Finish() {
    for (LiveNode& node : nodes_) {
      std::stable_sort(node.children.begin(), node.children.end(),
                       [this](size_t a, size_t b) { return nodes_[a].bytes > nodes_[b].bytes; });
    }
    return std::move(nodes_);
  }

 private:
  void Count(const Kind& kind, size_t count, size_t at) {
    LiveNode& node = nodes_[at];
    node.bytes += count * kind.bytes;
    node.blocks += count;
    node.by_class[kind.memory_class] += count * kind.bytes;
  }

  void AddFrames(uint32_t stack, std::vector<Step>* path) const {
    const size_t first = path->size();
    const UsedStacks& stacks = data_.stacks();
    const std::vector<std::string>& texts = data_.strings().texts();
    for (uint32_t at = stack; at != 0; at = stacks.ParentOf(at)) {
      const UsedStacks::Frame& frame = stacks.FrameOf(at);
      if (frame.plumbing == 0) path->push_back({texts[frame.function], texts[frame.place]});
    }
    std::reverse(path->begin() + static_cast<ptrdiff_t>(first), path->end());
  }

  [[nodiscard]] std::vector<Step> PathOf(const Kind& kind) const {
    const std::vector<std::string>& texts = data_.strings().texts();
    std::vector<Step> path;
    if (kind.operator_name != 0) {
      AddFrames(kind.forward_stack, &path);
      path.push_back({texts[kind.operator_name], "autograd node of this forward"});
    }
    AddFrames(kind.stack, &path);
    std::string name = texts[kind.title];
    if (name.empty()) name = attribution::WordsOf(static_cast<attribution::MemoryClass>(kind.memory_class));
    path.push_back({std::move(name), {}});
    return path;
  }

  const ViewerData& data_;
  std::vector<LiveNode> nodes_;
  std::map<std::pair<size_t, std::string>, size_t> children_;
};

}  // namespace

size_t LiveNode::MainClass() const {
  return static_cast<size_t>(std::max_element(by_class.begin(), by_class.end()) - by_class.begin());
}

std::vector<LiveNode> BuildLiveTree(const ViewerData& data, uint32_t device, Tick tick) {
  std::map<KindId, size_t> counts;
  for (const uint32_t row : data.blocks().Select(data.kinds(), {device, Mode::kAlive, 0, tick})) {
    ++counts[data.blocks().KindOf(row)];
  }
  Grower grower(data);
  for (const auto& [kind, count] : counts) grower.Add(data.kinds()[kind], count);
  return grower.Finish();
}

}  // namespace vramtrace::viewer_data
