// Shorter sequences: what holds a value for each token shrinks with them, attention scores with their square.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyzer/forecast/techniques/passes.h"
#include "analyzer/forecast/techniques/rows.h"

namespace vramtrace::forecast {
namespace {

class Lengths {
 public:
  Lengths(const Stream& stream, uint64_t full) : stream_(stream), full_(full) {
    const Graph graph(stream);
    for (const auto& [number, node] : graph.nodes()) {
      if (!node.operator_name.starts_with("SoftmaxBackward")) continue;
      for (const RequestId id : node.forward) {
        scores_[stream.SiteOf(stream[id]).module_path].insert(stream[id].bytes);
      }
    }
  }

  // 0: the size does not depend on the length.
  [[nodiscard]] int PowerOf(const Request& request) const {
    const SizeLaw& law = request.law;
    const bool follows_batch = law.slope > 0 && law.square == 0 && request.bytes % stream_.batch == 0;
    if (!follows_batch || request.memory_class == MemoryClass::kInput) return 0;
    const Bytes sample = request.bytes / stream_.batch;
    if (sample % full_ != 0) return 0;
    return sample % (full_ * full_) == 0 && ComparesTokens(request, sample) ? 2 : 1;
  }

 private:
  [[nodiscard]] bool ComparesTokens(const Request& request, Bytes sample) const {
    const Site& site = stream_.SiteOf(request);
    // Attention masks, one element a pair of tokens.
    constexpr Bytes kWidest = 8;
    if (site.text.find("mask") != std::string::npos) return sample <= kWidest * full_ * full_;
    const auto found = scores_.find(site.module_path);
    if (found == scores_.end()) return false;
    // Scores, and their copies in another type.
    const Bytes bytes = request.bytes;
    return std::any_of(found->second.begin(), found->second.end(), [&](Bytes scores) {
      return scores == bytes || scores == 2 * bytes || 2 * scores == bytes || scores == 4 * bytes;
    });
  }

  const Stream& stream_;
  uint64_t full_;
  std::map<std::string, std::set<Bytes>> scores_;  // by module: sizes of its softmax
};

}  // namespace

uint64_t LengthOf(const RunFacts& facts) {
  for (const Input& input : facts.inputs) {
    const bool integers = input.dtype.find("int") != std::string::npos;
    if (integers && input.shape.size() == 2 && input.shape[1] > 1)
      return static_cast<uint64_t>(input.shape[1]);
  }
  return 0;
}

// Whoever asks for a length asks for another one than the run has.
bool IsNever(const Stream& /*stream*/) { return false; }

Edited ApplyLength(const Stream& stream, const TechniqueOptions& options) {
  const uint64_t full = LengthOf(stream.facts);
  if (full == 0) return "no input of the model is a matrix of tokens";
  if (stream.batch == 0) return "the batch of the run is not known";
  const uint64_t length = options.length == 0 ? full / 2 : options.length;
  if (length == full) return fmt::format("the run's sequences have {} tokens already", full);
  const Lengths lengths(stream, full);
  Edit edit(stream);
  for (uint32_t i = 0; i < stream.requests.size(); ++i) {
    const int power = lengths.PowerOf(stream.requests[i]);
    if (power == 1) edit.Scale(RequestId{i}, length, full);
    if (power == 2) edit.Scale(RequestId{i}, length * length, full * full);
  }
  Stream edited = std::move(edit).Finish();
  for (Input& input : edited.facts.inputs) {
    const bool cut = input.shape.size() > 1 && static_cast<uint64_t>(input.shape[1]) == full;
    if (cut) input.shape[1] = static_cast<int64_t>(length);
  }
  return edited;
}

}  // namespace vramtrace::forecast
