// Recomputing blocks in backward. What torch.utils.checkpoint (use_reentrant=False) does: of a block's
// forward nothing is kept but its input; when backward first needs something of it, the forward runs again,
// up to the last tensor that it saves (early stop), and what it saves lives until backward has read it.
// Source: torch/utils/checkpoint.py.

#include <algorithm>

#include "analyzer/forecast/edit.h"
#include "analyzer/forecast/techniques/passes.h"
#include "analyzer/forecast/techniques/rows.h"

namespace vramtrace::forecast {
namespace {

// Everything is computed again, or all but what products and attention return.
enum class Kept : uint8_t { kNothing, kProducts };

bool IsAttention(std::string_view operator_name) { return operator_name.starts_with("ScaledDotProduct"); }

class Checkpointing {
 public:
  Checkpointing(const Stream& stream, const TechniqueOptions& options, Kept kept)
      : stream_(stream), options_(options), graph_(stream), edit_(stream), blocks_(RepeatedBlocks(stream)) {
    if (kept == Kept::kProducts) FindProducts();
  }

  Edited Apply() && {
    if (blocks_.empty()) return "no module of the model repeats";
    windows_ = FindWindows(stream_, blocks_);
    const bool trains = std::any_of(windows_.begin(), windows_.end(),
                                    [](const BlockWindow& w) { return w.backward_begin != Span::kOpen; });
    if (!trains) return "no backward pass of a repeated block was recorded";
    for (size_t i = 0; i < windows_.size(); ++i) Recompute(i);
    return std::move(edit_).Finish();
  }

 private:
  // Results of products: what lives longer than its operator.
  void FindProducts() {
    products_.resize(stream_.requests.size());
    for (const auto& [number, node] : graph_.nodes()) {
      // A batched product holds attention scores, which is what is not worth keeping.
      const bool batched = node.operator_name.starts_with("Bmm") || node.operator_name.starts_with("Baddbmm");
      if ((!IsProduct(node.operator_name) || batched) && !IsAttention(node.operator_name)) continue;
      for (const RequestId id : node.forward) {
        if (stream_[id].memory_class == MemoryClass::kWorkspace) continue;
        const Span& span = graph_.spans()[static_cast<size_t>(id)];
        for (uint32_t place = span.allocated + 1; place < span.freed && place < stream_.events.size();
             ++place) {
          const Event& event = stream_.events[place];
          if (event.kind != EventKind::kAllocate) continue;
          const uint64_t other = stream_[event.request].autograd_number;
          if (other == stream_[id].autograd_number) continue;
          products_[static_cast<size_t>(id)] = true;
          break;
        }
      }
    }
  }
  [[nodiscard]] bool IsKept(RequestId id) const {
    return !products_.empty() && products_[static_cast<size_t>(id)];
  }

  void Recompute(size_t index) {
    const BlockWindow& window = windows_[index];
    for (const RequestId id : window.requests) {
      // transformers turns its cache off with checkpointing.
      if (IsCacheCopy(stream_, stream_[id])) edit_.Remove(id);
    }
    if (window.block % options_.every != 0) return;
    KeepInput(index);
    if (window.backward_begin == Span::kOpen) {
      // The run ended in this forward: what a block saves is gone at its end all the same.
      for (const RequestId id : window.requests) Release(window, id);
      return;
    }
    Replay(window);
    for (const RequestId id : window.requests) Release(window, id);
  }

  [[nodiscard]] bool Outlives(const BlockWindow& window, RequestId id) const {
    return edit_.SpanOf(id).freed > window.end;
  }

  // What the forward leaves behind, besides its output and what the program itself holds: it goes where the
  // program's own variables let go of it, for nothing saves it.
  void Release(const BlockWindow& window, RequestId id) {
    const Request& request = stream_[id];
    if (!Outlives(window, id) || id == window.output || IsKept(id)) return;
    if (request.memory_class == MemoryClass::kOutput || IsCacheCopy(stream_, request)) return;
    edit_.FreeAfter(id,
                    request.is_copy ? EndOfForward(window) : std::min(window.end, graph_.ReleasePlace(id)));
  }

  // Autocast keeps its copies of weights until its region ends, which is before backward begins.
  [[nodiscard]] uint32_t EndOfForward(const BlockWindow& window) const {
    uint32_t place = window.end;
    for (uint32_t i = window.end; i < stream_.events.size(); ++i) {
      const Event& event = stream_.events[i];
      if (event.kind == EventKind::kStepEnd || event.phase == Phase::kBackward) break;
      if (event.kind == EventKind::kAllocate && event.phase == Phase::kForward) place = i;
    }
    return place;
  }

  [[nodiscard]] bool Follows(const BlockWindow& window, const BlockWindow& before) const {
    return before.step == window.step && before.block + 1 == window.block;
  }

  // The block's input is the output of the block before; it lives until the block's backward is through.
  void KeepInput(size_t index) {
    const BlockWindow& window = windows_[index];
    if (window.backward_end == Span::kOpen) return;
    if (index > 0 && Follows(window, windows_[index - 1])) {
      const RequestId input = windows_[index - 1].output;
      const bool short_lived = input != RequestId::kNone && edit_.SpanOf(input).freed < window.backward_end;
      if (short_lived) edit_.FreeAfter(input, window.backward_end);
    }
    // What the block recomputes of its own output is another tensor: the first one goes when its reader does.
    if (!window.saves_output || index + 1 == windows_.size()) return;
    const BlockWindow& next = windows_[index + 1];
    if (Follows(next, window) && next.backward_end != Span::kOpen && window.output != RequestId::kNone) {
      edit_.FreeAfter(window.output, next.backward_end);
    }
  }

  void Replay(const BlockWindow& window) {
    uint64_t last = 0;
    for (const RequestId id : window.requests) {
      const Request& request = stream_[id];
      if ((id != window.output || window.saves_output) && Outlives(window, id))
        last = std::max(last, request.autograd_number);
    }
    const uint32_t before = window.backward_begin;
    std::vector<std::pair<RequestId, RequestId>> kept;  // of the forward, its copy
    std::vector<std::pair<RequestId, RequestId>> made;
    for (uint32_t place = window.begin; place <= window.end; ++place) {
      const Event& event = stream_.events[place];
      if (event.kind == EventKind::kStepEnd) break;
      if (event.kind == EventKind::kFree) {
        const auto found = std::find_if(made.begin(), made.end(),
                                        [&](const auto& pair) { return pair.first == event.request; });
        if (found != made.end()) edit_.FreeBefore(found->second, before);
        continue;
      }
      const Request& request = stream_[event.request];
      const bool output = event.request == window.output;
      if (IsKept(event.request) && !output) {
        KeepProduct(window, event.request, request.autograd_number > last, &made);
        continue;
      }
      if ((output && !window.saves_output) || request.autograd_number > last) continue;
      if (IsCacheCopy(stream_, request)) continue;
      Request again = request;
      again.memory_class =
          Outlives(window, event.request) ? MemoryClass::kActivation : MemoryClass::kTemporary;
      const RequestId copy = edit_.AllocateBefore(before, again);
      if (output) {
        edit_.FreeAfter(copy, before);
        continue;
      }
      (Outlives(window, event.request) ? kept : made).emplace_back(event.request, copy);
    }
    for (const auto& [original, copy] : kept) {
      const uint32_t freed = edit_.SpanOf(original).freed;
      const bool in_backward = freed != Span::kOpen && freed >= before;
      edit_.FreeAfter(copy, in_backward ? std::min(freed, window.backward_end) : before);
    }
  }

  // It waits for the recomputation, which takes it in place of the product; one that is never asked for waits
  // until the block's backward is through.
  void KeepProduct(const BlockWindow& window, RequestId id, bool beyond_the_last,
                   std::vector<std::pair<RequestId, RequestId>>* made) {
    const uint32_t freed = edit_.SpanOf(id).freed;
    if (beyond_the_last) {
      edit_.FreeAfter(id, window.backward_end);
    } else if (Outlives(window, id)) {
      edit_.FreeAfter(id, std::min(freed, window.backward_end));
    } else {
      made->emplace_back(id, id);
    }
  }

  const Stream& stream_;
  const TechniqueOptions& options_;
  const Graph graph_;
  Edit edit_;
  std::vector<bool> products_;  // by request; empty: nothing is kept
  std::vector<std::string> blocks_;
  std::vector<BlockWindow> windows_;
};

}  // namespace

bool IsCheckpointed(const Stream& stream) {
  return std::any_of(stream.sites.begin(), stream.sites.end(),
                     [](const Site& site) { return site.phase == Phase::kRecompute; });
}

Edited ApplyCheckpointing(const Stream& stream, const TechniqueOptions& options) {
  return Checkpointing(stream, options, Kept::kNothing).Apply();
}

// torch.utils.checkpoint.create_selective_checkpoint_contexts: results of the operators named there stay.
Edited ApplySelectiveCheckpointing(const Stream& stream, const TechniqueOptions& options) {
  return Checkpointing(stream, options, Kept::kProducts).Apply();
}

}  // namespace vramtrace::forecast
