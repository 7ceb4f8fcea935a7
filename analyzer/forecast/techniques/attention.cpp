// Attention in one kernel. Eager attention makes the scores of all pairs of tokens several times over and
// keeps some for backward; scaled_dot_product_attention keeps query, key, value, its output, and one number a
// row of scores. Source: aten/src/ATen/native/transformers/cuda/attention.cu; arXiv 2205.14135.

#include <algorithm>
#include <map>

#include "analyzer/forecast/techniques/passes.h"
#include "analyzer/forecast/techniques/rows.h"

namespace vramtrace::forecast {
namespace {

// Nodes of one attention: from the product that makes the scores to the one that reads them.
struct Eager {
  uint64_t first = 0;
  uint64_t softmax = 0;
  uint64_t last = 0;
};

bool IsBatchedProduct(const GraphNode& node) {
  return node.operator_name.starts_with("Bmm") || node.operator_name.starts_with("Baddbmm");
}

class FusedAttention {
 public:
  explicit FusedAttention(const Stream& stream) : stream_(stream), graph_(stream), edit_(stream) {}

  Edited Apply() && {
    for (const auto& [number, node] : graph_.nodes()) {
      Eager eager;
      if (!node.operator_name.starts_with("SoftmaxBackward") || node.forward.empty()) continue;
      if (!Find(number, &eager)) continue;
      Fuse(eager);
      ++found_;
    }
    if (found_ == 0)
      return "no eager attention was recorded with its backward: two products around a softmax";
    RemoveMasks();
    NarrowRepeats();
    return std::move(edit_).Finish();
  }

 private:
  static constexpr uint64_t kFarthest = 12;  // nodes between softmax and either product

  bool Find(uint64_t softmax, Eager* eager) const {
    eager->softmax = softmax;
    for (uint64_t step = 1; step <= kFarthest; ++step) {
      const GraphNode* before = softmax > step ? graph_.Find(softmax - step) : nullptr;
      if (before != nullptr && IsBatchedProduct(*before) && eager->first == 0) eager->first = softmax - step;
      const GraphNode* after = graph_.Find(softmax + step);
      if (after != nullptr && IsBatchedProduct(*after) && eager->last == 0) eager->last = softmax + step;
    }
    return eager->first != 0 && eager->last != 0;
  }

  // Scores, a copy of them in half precision, a dropout's mask.
  [[nodiscard]] static bool IsOfScores(Bytes bytes, Bytes scores) {
    return bytes == scores || 2 * bytes == scores || 4 * bytes == scores || bytes == 2 * scores;
  }

  void Fuse(const Eager& eager) {
    const RequestId softmax = graph_.Find(eager.softmax)->forward.front();
    const Bytes scores = stream_[softmax].bytes;
    for (uint64_t number = eager.first; number <= eager.last; ++number) {
      const GraphNode* node = graph_.Find(number);
      if (node == nullptr) continue;
      for (const auto* requests : {&node->forward, &node->backward}) {
        for (const RequestId id : *requests) {
          const bool gone = id != softmax && IsOfScores(stream_[id].bytes, scores);
          if (gone) edit_.Remove(id);
        }
      }
    }
    KeepRowSums(softmax);
    RemoveCopy(eager.last);
  }

  // In place of the softmax's result: the logarithm of each row's sum, in single precision.
  void KeepRowSums(RequestId softmax) {
    const uint64_t length = LengthOf(stream_.facts);
    if (length == 0) {
      edit_.Remove(softmax);
    } else {
      edit_.Scale(softmax, 1, length);
    }
  }

  // What the last product returns is laid out anew for the layer that follows; the kernel returns it so.
  void RemoveCopy(uint64_t last) {
    const GraphNode* product = graph_.Find(last);
    if (product->forward.empty()) return;
    const RequestId made = product->forward.front();
    for (uint64_t number = last + 1; number <= last + kFarthest; ++number) {
      const GraphNode* node = graph_.Find(number);
      if (node == nullptr || node->forward.empty()) continue;
      const bool same = stream_[node->forward.front()].bytes == stream_[made].bytes;
      if (same) edit_.Remove(made);
      return;
    }
  }

  // Which pairs of tokens may see each other is part of the kernel.
  void RemoveMasks() {
    for (uint32_t i = 0; i < stream_.requests.size(); ++i) {
      const Site& site = stream_.SiteOf(stream_.requests[i]);
      if (site.phase == Phase::kForward && site.text.starts_with("transformers/masking_utils.py")) {
        edit_.Remove(RequestId{i});
      }
    }
  }

  // transformers repeats keys and values for each group of query heads; the kernel reads them as they are
  // (enable_gqa, since PyTorch 2.5), so that what is kept is as large as the projection's own result.
  void NarrowRepeats() {
    const allocator::PyTorchVersion version = stream_.facts.pytorch;
    if (version.major == 2 && version.minor < 5) return;
    std::map<std::string, Bytes> projected;  // by attention module
    for (const Request& request : stream_.requests) {
      const Site& site = stream_.SiteOf(request);
      constexpr std::string_view kValues = ".v_proj";
      const bool values = site.phase == Phase::kForward && site.module_path.ends_with(kValues);
      if (!values || request.memory_class == MemoryClass::kWorkspace) continue;
      projected.try_emplace(site.module_path.substr(0, site.module_path.size() - kValues.size()),
                            request.bytes);
    }
    for (uint32_t i = 0; i < stream_.requests.size(); ++i) {
      const Site& site = stream_.SiteOf(stream_.requests[i]);
      if (site.phase != Phase::kForward || site.text.find("(repeat_kv)") == std::string::npos) continue;
      const auto found = projected.find(site.module_path);
      const Bytes repeated = stream_.requests[i].bytes;
      if (found == projected.end() || found->second == 0 || repeated % found->second != 0) continue;
      edit_.Scale(RequestId{i}, 1, repeated / found->second);
    }
  }

  const Stream& stream_;
  Graph graph_;
  Edit edit_;
  size_t found_ = 0;
};

}  // namespace

bool IsFusedAttention(const Stream& stream) {
  return std::any_of(stream.sites.begin(), stream.sites.end(),
                     [](const Site& site) { return site.operator_name.starts_with("ScaledDotProduct"); });
}

Edited ApplyFusedAttention(const Stream& stream, const TechniqueOptions& /*options*/) {
  return FusedAttention(stream).Apply();
}

}  // namespace vramtrace::forecast
