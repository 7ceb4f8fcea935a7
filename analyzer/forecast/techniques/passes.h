#pragma once
// What ran when: the forward passes of a run, the nodes of their graphs, and who reads a saved tensor.

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyzer/forecast/edit.h"
#include "analyzer/forecast/techniques/blocks.h"

namespace vramtrace::forecast {

// One forward and its backward.
struct Pass {
  uint32_t begin = 0;  // place of its first forward allocation
  uint32_t end = 0;    // of its last
  uint64_t first_node = 0;
};

// A node of the autograd graph.
struct GraphNode {
  std::string operator_name;              // "AddmmBackward0"
  std::vector<RequestId> forward;         // what its operator asked for in forward
  std::vector<RequestId> backward;        // what it asks for itself
  std::vector<RequestId> reads;           // saved tensors that are gone when it has run
  uint32_t backward_place = Span::kOpen;  // its first allocation in backward
};

class Graph {
 public:
  explicit Graph(const Stream& stream);

  [[nodiscard]] const Stream& stream() const { return stream_; }
  [[nodiscard]] const std::vector<Pass>& passes() const { return passes_; }
  [[nodiscard]] const std::map<uint64_t, GraphNode>& nodes() const { return nodes_; }
  [[nodiscard]] const GraphNode* Find(uint64_t node) const;
  [[nodiscard]] const std::vector<Span>& spans() const { return spans_; }
  // The pass that a node belongs to; nullptr: none.
  [[nodiscard]] const Pass* PassOf(uint64_t node) const;
  // The node whose run ends a request that lives into backward; 0: none.
  [[nodiscard]] uint64_t ReaderOf(RequestId id) const;
  // Where a forward result that nothing saves goes: its module's caller has moved on.
  [[nodiscard]] uint32_t ReleasePlace(RequestId id) const;

 private:
  [[nodiscard]] std::string ReaderModule(RequestId id) const;
  [[nodiscard]] uint32_t ReadPlace(RequestId id) const;
  [[nodiscard]] uint32_t EndOfCall(uint32_t place, std::string_view path) const;
  [[nodiscard]] uint32_t LetGo(RequestId id) const;
  void Read();
  void Link();

  const Stream& stream_;
  std::vector<Span> spans_;
  std::vector<Pass> passes_;
  std::map<uint64_t, GraphNode> nodes_;
  std::unordered_map<uint32_t, uint64_t> readers_;
  std::vector<bool> has_children_;  // by site: its module holds others
};

// A key or value that transformers' cache copied; it holds them until the model returns.
[[nodiscard]] bool IsCacheCopy(const Stream& stream, const Request& request);

// Tokens of a sequence, by the first input that is a matrix of integers; 0: there is none.
[[nodiscard]] uint64_t LengthOf(const RunFacts& facts);

// Matrix products and convolutions: what autocast runs in half precision.
[[nodiscard]] bool IsProduct(std::string_view operator_name);

}  // namespace vramtrace::forecast
