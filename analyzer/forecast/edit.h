#pragma once
// Edits of a stream. Places are events of the stream that the edit began with; several insertions at one
// place keep their order.

#include <cstdint>
#include <vector>

#include "analyzer/forecast/stream.h"

namespace vramtrace::forecast {

// Where in the stream a request begins and ends; `kOpen` where it is never freed.
struct Span {
  static constexpr uint32_t kOpen = UINT32_MAX;
  uint32_t allocated = kOpen;  // place in Stream::events
  uint32_t freed = kOpen;
};

// The span of every request of a stream.
[[nodiscard]] std::vector<Span> SpansOf(const Stream& stream);

class Edit {
 public:
  explicit Edit(const Stream& base);

  [[nodiscard]] const Stream& base() const { return base_; }
  [[nodiscard]] const Span& SpanOf(RequestId id) const { return spans_[static_cast<uint32_t>(id)]; }

  // The request is never made.
  void Remove(RequestId id);
  // Its size and law times numerator / denominator, rounded up.
  void Scale(RequestId id, uint64_t numerator, uint64_t denominator);
  // A fixed size.
  void Resize(RequestId id, Bytes bytes);
  // It is freed right after event `place`, rather than where it was, or where an earlier call put it. kOpen:
  // never.
  void FreeAfter(RequestId id, uint32_t place);
  // What else is known of it.
  [[nodiscard]] Request& Change(RequestId id) { return requests_[static_cast<uint32_t>(id)]; }

  // A new request, made right after (or before) event `place`; free it with FreeAfter or FreeBefore.
  RequestId AllocateAfter(uint32_t place, const Request& request);
  RequestId AllocateBefore(uint32_t place, const Request& request);
  void FreeBefore(RequestId id, uint32_t place);

  // The edited stream. Ids stay; a request that was removed is a row without events.
  [[nodiscard]] Stream Finish() &&;

 private:
  struct Inserted {
    uint32_t place = 0;
    bool before = false;
    Event event;
  };
  void DropFree(RequestId id);
  void Insert(uint32_t place, bool before, EventKind kind, RequestId id);

  const Stream& base_;
  std::vector<Span> spans_;
  std::vector<Request> requests_;
  std::vector<bool> removed_;
  std::vector<bool> moved_;        // its own free is dropped
  std::vector<uint32_t> free_at_;  // place in inserted_ of its free; Span::kOpen: none
  std::vector<Inserted> inserted_;
};

}  // namespace vramtrace::forecast
