#include "analyzer/forecast/techniques/blocks.h"

#include <algorithm>
#include <map>
#include <set>

namespace vramtrace::forecast {
namespace {

struct Node {
  std::string class_name;  // empty: not known
  std::map<std::string, Node> children;
};

// Every module that is known, or that a site or a parameter names.
Node TreeOf(const Stream& stream, std::vector<std::string>* order) {
  Node root;
  const auto add = [&](const std::string& path) -> Node& {
    Node* module = &root;
    for (size_t from = 0; from < path.size();) {
      const size_t dot = std::min(path.find('.', from), path.size());
      const auto [place, added] = module->children.try_emplace(path.substr(from, dot - from));
      if (added) order->push_back(path.substr(0, dot));
      module = &place->second;
      from = dot + 1;
    }
    return *module;
  };
  for (const Module& module : stream.modules) add(module.path).class_name = module.class_name;
  for (const Parameter& parameter : stream.parameters) add(parameter.module_path);
  for (const Site& site : stream.sites) {
    if (!site.has_module) continue;
    Node& module = add(site.module_path);
    if (module.class_name.empty()) module.class_name = site.module_class;
  }
  return root;
}

bool IsNumber(std::string_view name) {
  return !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos;
}

bool IsContainer(const Node& module) {
  if (!module.class_name.empty()) {
    return module.class_name == "Sequential" || module.class_name == "ModuleList" ||
           module.class_name == "ModuleDict";
  }
  return std::all_of(module.children.begin(), module.children.end(),
                     [](const auto& child) { return IsNumber(child.first); });
}

// The names below it, which tell classes apart where no class is known.
std::string ShapeOf(const Node& module) {
  std::string shape = module.class_name;
  if (!shape.empty()) return shape;
  for (const auto& [name, child] : module.children) shape += name + "(" + ShapeOf(child) + ")";
  return shape;
}

void Collect(const Node& module, const std::string& path, std::set<std::string>* blocks) {
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> groups;
  for (const auto& [name, child] : module.children) {
    const std::string stem = name.substr(0, name.find_last_not_of("0123456789") + 1);
    const bool numbered = stem.size() < name.size();
    if (numbered && !child.children.empty() && !IsContainer(child)) {
      groups[{stem, ShapeOf(child)}].push_back(name);
    }
  }
  std::set<std::string> chosen;
  for (const auto& [key, names] : groups) {
    if (names.size() > 1) chosen.insert(names.begin(), names.end());
  }
  for (const auto& [name, child] : module.children) {
    std::string below = path;
    if (!below.empty()) below += '.';
    below += name;
    if (chosen.contains(name)) {
      blocks->insert(below);
    } else {
      Collect(child, below, blocks);
    }
  }
}

// Operators whose backward reads their own result.
bool SavesResult(std::string_view operator_name) {
  constexpr std::string_view kOperators[] = {"ReluBackward0", "TanhBackward0",    "SigmoidBackward0",
                                             "ExpBackward0",  "SoftmaxBackward0", "EluBackward0"};
  return std::find(std::begin(kOperators), std::end(kOperators), operator_name) != std::end(kOperators);
}

class WindowFinder {
 public:
  WindowFinder(const Stream& stream, const std::vector<std::string>& blocks)
      : stream_(stream), block_of_site_(stream.sites.size(), kNoBlock) {
    for (size_t i = 0; i < stream.sites.size(); ++i) {
      const Site& site = stream.sites[i];
      for (uint32_t b = 0; site.has_module && b < blocks.size(); ++b) {
        if (!IsBelow(site.module_path, blocks[b])) continue;
        block_of_site_[i] = b;
        break;
      }
    }
    for (size_t i = 0; i < stream.sites.size(); ++i) {
      own_.push_back(block_of_site_[i] != kNoBlock &&
                     stream.sites[i].module_path == blocks[block_of_site_[i]]);
    }
  }

  std::vector<BlockWindow> Find() && {
    for (uint32_t place = 0; place < stream_.events.size(); ++place) {
      const Event& event = stream_.events[place];
      if (event.kind == EventKind::kStepEnd) Close(place);
      if (event.kind != EventKind::kAllocate) continue;
      const Request& request = stream_[event.request];
      const uint32_t block = block_of_site_[static_cast<size_t>(request.site)];
      if (event.phase == Phase::kForward) {
        TakeForward(place, event.request, block);
      } else {
        Close(place);
        if (event.phase == Phase::kBackward) TakeBackward(place, request);
      }
    }
    Close(static_cast<uint32_t>(stream_.events.size()));
    CloseBackward(static_cast<uint32_t>(stream_.events.size()));
    for (BlockWindow& window : windows_) FindOutput(&window);
    return std::move(windows_);
  }

 private:
  static constexpr uint32_t kNoBlock = UINT32_MAX;

  void TakeForward(uint32_t place, RequestId id, uint32_t block) {
    const Request& request = stream_[id];
    if (!open_ || windows_.back().block != block) {
      if (!windows_.empty() && windows_.back().step == request.step && request.autograd_number > 0) {
        BlockWindow& before = windows_.back();
        if (!after_known_) before.last_node = std::max(before.last_node, NodeOf(request.autograd_number) - 1);
        after_known_ = true;
      }
      Close(place);
      CloseBackward(place);
      if (block == kNoBlock) return;
      BlockWindow window;
      window.block = block;
      window.step = request.step;
      window.begin = place;
      window.first_node = NodeOf(request.autograd_number);
      windows_.push_back(window);
      open_ = true;
      after_known_ = false;
    }
    BlockWindow& window = windows_.back();
    window.last_node = std::max(window.last_node, NodeOf(request.autograd_number));
    window.requests.push_back(id);
  }

  void Close(uint32_t place) {
    if (open_) windows_.back().end = place - 1;
    open_ = false;
  }

  void TakeBackward(uint32_t place, const Request& request) {
    const uint64_t node = request.autograd_number;
    if (node == 0) return;
    if (running_ != kNoBlock && !Holds(windows_[running_], node)) CloseBackward(place);
    if (running_ != kNoBlock) return;
    for (size_t i = windows_.size(); i-- > 0;) {
      if (windows_[i].step != request.step) break;
      if (!Holds(windows_[i], node)) continue;
      running_ = static_cast<uint32_t>(i);
      if (windows_[i].backward_begin == Span::kOpen) {
        windows_[i].backward_begin = place;
        windows_[i].saves_output = SavesResult(stream_.SiteOf(request).operator_name);
      }
      break;
    }
  }

  void CloseBackward(uint32_t place) {
    if (running_ != kNoBlock) windows_[running_].backward_end = place - 1;
    running_ = kNoBlock;
  }

  static bool Holds(const BlockWindow& window, uint64_t node) {
    return window.first_node <= node && node <= window.last_node;
  }

  // The block's own last request that outlives it; where it has none near its end (a block that returns what
  // a child made), the last one that is as large as any that outlives it and comes last.
  void FindOutput(BlockWindow* window) const {
    if (spans_.empty()) spans_ = SpansOf(stream_);
    Bytes largest = 0;
    const size_t count = window->requests.size();
    for (size_t i = count; i-- > 0;) {
      const RequestId id = window->requests[i];
      const Request& request = stream_[id];
      if (spans_[static_cast<size_t>(id)].freed <= window->end) continue;
      if (own_[static_cast<size_t>(request.site)]) {
        window->output = id;
        return;
      }
      // A dropout's mask comes after or before its output, a quarter of its size.
      if (i + kTail < count && largest > 0) break;
      if (request.bytes > largest) {
        largest = request.bytes;
        window->output = id;
      }
    }
  }
  static constexpr size_t kTail = 4;

  const Stream& stream_;
  std::vector<uint32_t> block_of_site_;
  std::vector<bool> own_;
  mutable std::vector<Span> spans_;
  std::vector<BlockWindow> windows_;
  bool open_ = false;
  bool after_known_ = false;     // the node that follows the last window is known
  uint32_t running_ = kNoBlock;  // window whose backward runs
};

}  // namespace

std::vector<std::string> RepeatedBlocks(const Stream& stream) {
  std::vector<std::string> order;
  const Node root = TreeOf(stream, &order);
  std::set<std::string> blocks;
  Collect(root, "", &blocks);
  std::vector<std::string> ordered;
  for (const std::string& path : order) {
    if (blocks.contains(path)) ordered.push_back(path);
  }
  return ordered;
}

std::vector<BlockWindow> FindWindows(const Stream& stream, const std::vector<std::string>& blocks) {
  return WindowFinder(stream, blocks).Find();
}

}  // namespace vramtrace::forecast
