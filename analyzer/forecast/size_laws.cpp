#include "analyzer/forecast/size_laws.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "analyzer/forecast/reductions.h"

namespace vramtrace::forecast {
namespace {

// Sizes below this many bytes a sample hold counters, seeds and scalars rather than samples.
constexpr uint64_t kLeastPerSample = 64;
constexpr Bytes kAllocatorUnit = 512;

class RuleOfOne {
 public:
  explicit RuleOfOne(const Stream& stream) : stream_(stream) {
    for (const Parameter& parameter : stream.parameters) {
      const Bytes bytes = Units(parameter.bytes);
      by_module_[parameter.module_path].insert(bytes);
      all_.insert(bytes);
    }
    for (const Request& request : stream.requests) {
      const Site& site = stream.SiteOf(request);
      if (request.memory_class == MemoryClass::kGradient && request.parameter != ParameterId::kNone) {
        named_.insert({request.autograd_number, request.step});
      }
      if (site.phase != Phase::kForward || request.is_copy || !site.has_module) continue;
      forward_[site.module_path].insert(Units(request.bytes));
    }
    FindBorrowed();
    FindGoneInLoad();
  }

  [[nodiscard]] SizeLaw LawOf(const Request& request) const {
    if (IsFixed(request) || gone_in_load_[static_cast<size_t>(&request - stream_.requests.data())])
      return SizeLaw::Fixed(request.bytes);
    const uint64_t batch = stream_.batch;
    if (batch == 0 || request.bytes % batch != 0) return SizeLaw::Fixed(request.bytes, LawBasis::kUnknown);
    SizeLaw law;
    law.slope = static_cast<int64_t>(request.bytes / batch);
    law.basis = LawBasis::kRule;
    return law;
  }

  [[nodiscard]] bool IsFixed(const Request& request) const {
    switch (request.memory_class) {
      case MemoryClass::kWeight:
      case MemoryClass::kBuffer:
      case MemoryClass::kGradient:
      case MemoryClass::kOptimizerState:
      case MemoryClass::kSaveCopy:
        return true;
      case MemoryClass::kWorkspace:
        // A result may have the size of a workspace: in backward the running operator tells.
        if (CanHaveWorkspace(stream_.SiteOf(request))) return true;
        break;
      case MemoryClass::kInput:
        return false;
      default:
        break;
    }
    const Site& site = stream_.SiteOf(request);
    switch (site.phase) {
      case Phase::kLoad:
      case Phase::kOptimizer:
      case Phase::kZeroGrad:
      case Phase::kClip:
      case Phase::kSave:
        return true;
      default:
        break;
    }
    if (request.is_copy || request.bytes < kLeastPerSample * stream_.batch) return true;
    return IsBorrowedCopy(request, site) || HasSizeOfParameter(request, site);
  }

 private:
  // Weights of a child that is never called: its parent computes with them, and autocast, where it is on,
  // copies them there.
  void FindBorrowed() {
    constexpr uint32_t kSingle = 4;
    const bool autocast = std::any_of(stream_.requests.begin(), stream_.requests.end(),
                                      [](const Request& request) { return request.is_copy; });
    if (!autocast) return;
    for (const Parameter& parameter : stream_.parameters) {
      const std::string& path = parameter.module_path;
      const size_t dot = path.rfind('.');
      if (dot == std::string::npos || parameter.element_size != kSingle || forward_.contains(path)) continue;
      borrowed_[path.substr(0, dot)].insert(Units(parameter.bytes / 2));
    }
  }
  [[nodiscard]] bool IsBorrowedCopy(const Request& request, const Site& site) const {
    if (site.phase != Phase::kForward || !site.has_module) return false;
    const auto found = borrowed_.find(site.module_path);
    return found != borrowed_.end() && found->second.contains(Units(request.bytes));
  }

  // What comes and goes while the model is made is no batch: initial values, whatever their class.
  void FindGoneInLoad() {
    gone_in_load_.resize(stream_.requests.size());
    for (const Event& event : stream_.events) {
      if (event.kind != EventKind::kFree || event.phase != Phase::kLoad) continue;
      gone_in_load_[static_cast<size_t>(event.request)] = true;
    }
  }

  static bool CanHaveWorkspace(const Site& site) {
    constexpr std::string_view kNever[] = {"Mul", "Slice", "Add",  "Cat",   "View",
                                           "Neg", "Silu",  "Gelu", "Expand"};
    return std::none_of(std::begin(kNever), std::end(kNever), [&](std::string_view name) {
      return site.operator_name.starts_with(name) && !site.operator_name.starts_with("Addmm") &&
             !site.operator_name.starts_with("Addbmm");
    });
  }

  // Sums of gradients and their parts: never a weight's gradient, which products and copies make.
  static bool CanMakeWeightGradient(const Site& site) {
    return !site.operator_name.starts_with("View") && !site.operator_name.starts_with("Slice");
  }

  // What the allocator's unit leaves of a size, so that a tensor and its padded copy compare equal.
  static Bytes Units(Bytes bytes) { return bytes / kAllocatorUnit * kAllocatorUnit; }

  [[nodiscard]] bool HasSizeOfParameter(const Request& request, const Site& site) const {
    const Bytes bytes = Units(request.bytes);
    if (bytes == 0) return false;
    if (site.phase == Phase::kScript) return all_.contains(bytes);
    // In forward a copy of a weight is saved or short-lived, and an activation of its size looks the same:
    // only half the size of a single-precision weight is taken for a cast (is_copy).
    if (site.phase != Phase::kBackward || !site.has_module) return false;
    const auto found = by_module_.find(site.module_path);
    if (found == by_module_.end()) return false;
    // Where the module's forward has results of this size too, their gradients have it: samples, not weights.
    const auto forward = forward_.find(site.module_path);
    if (forward != forward_.end() && forward->second.contains(bytes)) return false;
    const std::unordered_set<Bytes>& sizes = found->second;
    if (!CanMakeWeightGradient(site)) return false;
    // The node's weight gradient is another request: what else has its size, or twice or half of it, is the
    // input's.
    const bool product = site.operator_name.starts_with("Addmm") || site.operator_name.starts_with("Mm");
    if ((product || !sizes.contains(bytes)) && named_.contains({request.autograd_number, request.step}))
      return false;
    return sizes.contains(bytes) || sizes.contains(2 * bytes) || sizes.contains(Units(bytes / 2));
  }

  const Stream& stream_;
  std::unordered_map<std::string, std::unordered_set<Bytes>> by_module_;
  std::unordered_map<std::string, std::unordered_set<Bytes>> forward_;  // results of the module's forward
  std::unordered_map<std::string, std::unordered_set<Bytes>> borrowed_;
  std::unordered_set<Bytes> all_;
  std::vector<bool> gone_in_load_;                 // by request
  std::set<std::pair<uint64_t, uint32_t>> named_;  // nodes and steps with a gradient that is named
};

// A request's partner in another recording.
class Partners {
 public:
  explicit Partners(const Stream& stream) : stream_(stream) {
    for (uint32_t i = 0; i < stream.requests.size(); ++i) {
      const Request& request = stream.requests[i];
      exact_.try_emplace(KeyOf(stream, request, request.step), i);
      newest_[KeyOf(stream, request, 0)] = i;
    }
  }
  // The request of the same site, step and ordinal; of the newest step that has one where the runs differ in
  // length; nullptr where there is none.
  [[nodiscard]] const Request* Find(const Stream& of, const Request& request) const {
    const auto exact = exact_.find(KeyOf(of, request, request.step));
    if (exact != exact_.end()) return &stream_.requests[exact->second];
    if (request.step == 0) return nullptr;
    const auto newest = newest_.find(KeyOf(of, request, 0));
    return newest == newest_.end() ? nullptr : &stream_.requests[newest->second];
  }

 private:
  using Key = std::tuple<uint64_t, uint32_t, uint32_t>;
  struct Hash {
    size_t operator()(const Key& key) const {
      const auto& [site, step, ordinal] = key;
      return static_cast<size_t>(site ^ (uint64_t{step} * 0x9e3779b97f4a7c15ULL) ^
                                 (uint64_t{ordinal} * 0xbf58476d1ce4e5b9ULL));
    }
  };
  static Key KeyOf(const Stream& stream, const Request& request, uint32_t step) {
    return {stream.SiteOf(request).key, step, request.ordinal};
  }

  const Stream& stream_;
  std::unordered_map<Key, uint32_t, Hash> exact_;
  std::unordered_map<Key, uint32_t, Hash> newest_;
};

// The law through `here` bytes at batch `b` and `there` bytes at batch `a`.
SizeLaw LawThrough(Bytes here, uint64_t b, Bytes there, uint64_t a) {
  SizeLaw law;
  law.basis = LawBasis::kMeasured;
  const auto x = static_cast<int64_t>(there);
  const auto y = static_cast<int64_t>(here);
  const auto from = static_cast<int64_t>(a);
  const auto to = static_cast<int64_t>(b);
  const bool quadratic =
      x != y && static_cast<__int128>(y) * from * from == static_cast<__int128>(x) * to * to;
  if (quadratic) {
    law.square = y;
    law.divisor = static_cast<uint64_t>(to * to);
    return law;
  }
  const int64_t sign = to > from ? 1 : -1;
  law.slope = (y - x) * sign;
  law.divisor = static_cast<uint64_t>((to - from) * sign);
  // A size that falls with the batch is a choice of kernel, not a law: the larger of the two stands.
  if (law.slope < 0) return SizeLaw::Fixed(std::max(here, there), LawBasis::kMeasured);
  law.fixed = y * static_cast<int64_t>(law.divisor) - law.slope * to;
  return law;
}

}  // namespace

void SetLawsByRule(Stream* stream) {
  const RuleOfOne rule(*stream);
  for (Request& request : stream->requests) request.law = rule.LawOf(request);
  LimitReductions(stream);
}

Alignment SetLawsByTwo(Stream* stream, const Stream& other) {
  const RuleOfOne rule(*stream);
  const Partners partners(other);
  Alignment alignment;
  for (Request& request : stream->requests) {
    const Request* partner = partners.Find(*stream, request);
    if (partner == nullptr) {
      ++alignment.unmatched;
      alignment.unmatched_bytes += request.bytes;
      request.law = rule.LawOf(request);
      continue;
    }
    ++alignment.matched;
    alignment.matched_bytes += request.bytes;
    request.law = partner->bytes == request.bytes
                      ? SizeLaw::Fixed(request.bytes, LawBasis::kMeasured)
                      : LawThrough(request.bytes, stream->batch, partner->bytes, other.batch);
  }
  LimitReductions(stream);
  return alignment;
}

}  // namespace vramtrace::forecast
