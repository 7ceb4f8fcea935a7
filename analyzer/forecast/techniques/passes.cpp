#include "analyzer/forecast/techniques/passes.h"

#include <algorithm>
#include <set>

namespace vramtrace::forecast {
namespace {

std::string ParentOf(const std::string& path) {
  const size_t dot = path.rfind('.');
  return dot == std::string::npos ? std::string() : path.substr(0, dot);
}

// The child of `above` that `path` lies in.
std::string ChildOf(const std::string& above, const std::string& path) {
  const size_t from = above.empty() ? 0 : above.size() + 1;
  return path.size() <= from ? std::string() : path.substr(0, path.find('.', from));
}

}  // namespace

bool IsCacheCopy(const Stream& stream, const Request& request) {
  const Site& site = stream.SiteOf(request);
  return site.phase == Phase::kForward && site.text.starts_with("transformers/cache_utils.py");
}

bool IsProduct(std::string_view operator_name) {
  constexpr std::string_view kProducts[] = {"AddmmBackward",   "MmBackward",          "BmmBackward",
                                            "BaddbmmBackward", "ConvolutionBackward", "LinearBackward",
                                            "MatmulBackward"};
  return std::any_of(std::begin(kProducts), std::end(kProducts),
                     [&](std::string_view product) { return operator_name.starts_with(product); });
}

Graph::Graph(const Stream& stream) : stream_(stream), spans_(SpansOf(stream)) {
  std::set<std::string> parents;
  for (const Module& module : stream.modules) parents.insert(ParentOf(module.path));
  for (const Site& site : stream.sites) parents.insert(ParentOf(site.module_path));
  for (const Site& site : stream.sites) has_children_.push_back(parents.contains(site.module_path));
  Read();
  Link();
}

void Graph::Read() {
  bool open = false;
  for (uint32_t place = 0; place < stream_.events.size(); ++place) {
    const Event& event = stream_.events[place];
    if (event.kind == EventKind::kStepEnd) open = false;
    if (event.kind != EventKind::kAllocate) continue;
    const Request& request = stream_[event.request];
    if (event.phase == Phase::kForward && request.autograd_number != 0) {
      if (!open) passes_.push_back({place, place, NodeOf(request.autograd_number)});
      open = true;
      passes_.back().end = place;
      nodes_[NodeOf(request.autograd_number)].forward.push_back(event.request);
    } else if (event.phase == Phase::kBackward && request.autograd_number != 0) {
      open = false;
      const Site& site = stream_.SiteOf(request);
      if (site.operator_name.empty() || site.operator_name == "AccumulateGrad") continue;
      GraphNode& node = nodes_[request.autograd_number];
      if (node.backward.empty()) node.backward_place = place;
      if (node.operator_name.empty()) node.operator_name = site.operator_name;
      node.backward.push_back(event.request);
    }
  }
}

void Graph::Link() {
  uint64_t running = 0;
  for (const Event& event : stream_.events) {
    if (event.kind == EventKind::kStepEnd) running = 0;
    if (event.kind == EventKind::kAllocate && event.phase == Phase::kBackward) {
      const Request& request = stream_[event.request];
      if (stream_.SiteOf(request).operator_name != "AccumulateGrad") running = request.autograd_number;
    }
    if (event.kind != EventKind::kFree || event.phase != Phase::kBackward || running == 0) continue;
    const Phase made = stream_.SiteOf(stream_[event.request]).phase;
    if (made != Phase::kForward && made != Phase::kScript && made != Phase::kLoad) continue;
    readers_[static_cast<uint32_t>(event.request)] = running;
    nodes_[running].reads.push_back(event.request);
  }
}

const GraphNode* Graph::Find(uint64_t node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? nullptr : &found->second;
}

const Pass* Graph::PassOf(uint64_t node) const {
  const Pass* found = nullptr;
  for (const Pass& pass : passes_) {
    if (pass.first_node <= node) found = &pass;
  }
  return found;
}

uint64_t Graph::ReaderOf(RequestId id) const {
  const auto found = readers_.find(static_cast<uint32_t>(id));
  return found == readers_.end() ? 0 : found->second;
}

uint32_t Graph::ReleasePlace(RequestId id) const { return std::max(LetGo(id), ReadPlace(id)); }

// Where forward runs the operator that reads it: no variable lets go before.
uint32_t Graph::ReadPlace(RequestId id) const {
  const uint32_t made = spans_[static_cast<size_t>(id)].allocated;
  const GraphNode* reader = Find(ReaderOf(id));
  if (reader == nullptr || reader->forward.empty()) return made;
  const uint32_t place = spans_[static_cast<size_t>(reader->forward.back())].allocated;
  const Pass* pass = PassOf(ReaderOf(id));
  return pass != nullptr && place >= made && place <= pass->end ? place : made;
}

// The last allocation of the call of a module that `place` is in.
uint32_t Graph::EndOfCall(uint32_t place, std::string_view path) const {
  uint32_t last = place;
  for (uint32_t at = place + 1; at < stream_.events.size(); ++at) {
    const Event& event = stream_.events[at];
    if (event.kind == EventKind::kStepEnd || event.phase == Phase::kBackward) break;
    if (event.kind != EventKind::kAllocate) continue;
    if (!IsBelow(stream_.SiteOf(stream_[event.request]).module_path, path)) break;
    last = at;
  }
  return last;
}

uint32_t Graph::LetGo(RequestId id) const {
  const Request& request = stream_[id];
  uint32_t last = spans_[static_cast<size_t>(id)].allocated;
  if (IsCacheCopy(stream_, request)) {
    const Pass* pass = PassOf(NodeOf(request.autograd_number));
    return pass == nullptr ? last : pass->end;
  }
  const std::string& path = stream_.SiteOf(request).module_path;
  const bool own = has_children_[static_cast<size_t>(request.site)];
  const std::string above = ParentOf(path);
  const std::string reader = ReaderModule(id);
  // What a module's own code makes and reads is its local variable: that of a layer's arithmetic is
  // overwritten by what is made of it, that of a module that calls others in between stays until it returns.
  if (!path.empty() && reader == path) return own ? EndOfCall(last, path) : ReadPlace(id);
  // What a module returns to its caller, and another call reads: `x = block(x)` holds it while that one runs.
  if (!own && !reader.empty() && !IsBelow(reader, above)) {
    std::string common = ParentOf(above);
    while (!IsBelow(reader, common)) common = ParentOf(common);
    const std::string calling = ChildOf(common, reader);
    return calling.empty() ? ReadPlace(id) : EndOfCall(ReadPlace(id), calling);
  }
  // The call that reads it, beside its own module: `x = norm(x); x = layer(x)` lets go when `layer` returns.
  std::string call;
  if (!own && IsBelow(reader, above) && !IsBelow(reader, path)) call = ChildOf(above, reader);
  bool inside = false;
  for (uint32_t place = last + 1; place < stream_.events.size(); ++place) {
    const Event& event = stream_.events[place];
    if (event.kind == EventKind::kStepEnd || event.phase == Phase::kBackward) break;
    if (event.kind != EventKind::kAllocate) continue;
    const std::string& other = stream_.SiteOf(stream_[event.request]).module_path;
    if (inside && !IsBelow(other, call)) break;
    last = place;
    if (own && other == path) break;  // the sum that takes its name
    if (!IsBelow(other, above) || (!own && other == above)) break;
    if (own && call.empty() && !IsBelow(other, path)) call = ChildOf(above, other);  // the next block
    inside = !call.empty() && IsBelow(other, call);
  }
  return last;
}

std::string Graph::ReaderModule(RequestId id) const {
  const GraphNode* node = Find(ReaderOf(id));
  if (node == nullptr) return {};
  const std::vector<RequestId>& known = node->forward.empty() ? node->backward : node->forward;
  return known.empty() ? std::string() : stream_.SiteOf(stream_[known.front()]).module_path;
}

}  // namespace vramtrace::forecast
