#include "analyzer/timeline/forward_index.h"

#include <algorithm>

namespace vramtrace::timeline {

void ForwardIndex::Add(const trace::Event& event) {
  const trace::AutogradPosition& autograd = event.autograd;
  if (autograd.operator_name != model::StringId::kNone) {
    if (first_node_thread_ == 0) first_node_thread_ = autograd.node_thread;
    return;
  }
  if (autograd.sequence_number == 0) return;
  if (by_packet_thread_.empty()) first_forward_thread_ = event.thread;
  Thread& thread =
      autograd.node_thread != 0 ? by_node_thread_[autograd.node_thread] : by_packet_thread_[event.thread];
  std::vector<Entry>& entries = thread.entries;
  // The first event with a number is the one wanted.
  if (!entries.empty() && entries.back().sequence_number >= event.autograd.sequence_number) return;
  if (entries.size() >= kMostEntries) {
    entries.erase(entries.begin(), entries.begin() + kMostEntries / 2);
    thread.previous_step = 0;
  }
  entries.push_back({event.autograd.sequence_number, event.stack, event.sequence});
}

void ForwardIndex::EndStep() {
  const auto forget = [](Thread& thread) {
    const auto begin = thread.entries.begin();
    thread.entries.erase(begin, begin + static_cast<ptrdiff_t>(thread.previous_step));
    thread.previous_step = thread.entries.size();
  };
  for (auto& [id, thread] : by_node_thread_) forget(thread);
  for (auto& [id, thread] : by_packet_thread_) forget(thread);
}

const ForwardIndex::Thread* ForwardIndex::ThreadOf(const trace::AutogradPosition& node) const {
  const auto exact = by_node_thread_.find(node.node_thread);
  if (exact != by_node_thread_.end()) return &exact->second;
  // Graphs that another thread made (a recomputed one) count from its own numbers: not to be looked up here.
  if (node.node_thread != first_node_thread_) return nullptr;
  const auto first = by_packet_thread_.find(first_forward_thread_);
  return first == by_packet_thread_.end() ? nullptr : &first->second;
}

const ForwardIndex::Entry* ForwardIndex::Find(const trace::AutogradPosition& node) const {
  if (node.operator_name == model::StringId::kNone) return nullptr;
  const Thread* thread = ThreadOf(node);
  if (thread == nullptr) return nullptr;
  const auto after =
      std::upper_bound(thread->entries.begin(), thread->entries.end(), node.sequence_number,
                       [](uint64_t number, const Entry& entry) { return number < entry.sequence_number; });
  return after == thread->entries.end() ? nullptr : &*after;
}

}  // namespace vramtrace::timeline
