#pragma once
// Streams, events and stream capture. Work completes at once: a stream is always idle, an event has happened
// when it is recorded. Handles are pointers to these objects; the values 0, 1 and 2 (default, legacy and
// per-thread stream) mean the current device's default stream.

#include <cstdint>
#include <vector>

#include "preload/simulator/core/status.h"

namespace vramtrace::simulator {

inline constexpr int kLowestStreamPriority = 0;
inline constexpr int kHighestStreamPriority = -5;

struct Graph;
struct GraphNode;
struct Stream;

struct Capture {
  uint64_t id = 0;
  Graph* graph = nullptr;
  bool to_existing_graph = false;
  Stream* origin = nullptr;          // the stream that began it
  std::vector<Stream*> joined;       // by waiting for one of its events
  std::vector<GraphNode*> frontier;  // what the next node depends on
};

struct Stream {
  uint64_t magic = 0;
  uint64_t id = 0;
  int device = 0;
  int priority = 0;
  unsigned flags = 0;
  bool is_default = false;
  Capture* capture = nullptr;  // owned by the capture table
};

struct Event {
  uint64_t magic = 0;
  int device = 0;
  unsigned flags = 0;
  uint64_t recorded_ns = 0;  // 0: never
  Capture* capture = nullptr;
};

VRAMTRACE_SIM_EXPORT Status CreateStream(unsigned flags, int priority, Stream** stream);
VRAMTRACE_SIM_EXPORT Status DestroyStream(Stream* stream);
// The stream behind a handle; nullptr when the handle is none.
[[nodiscard]] VRAMTRACE_SIM_EXPORT Stream* FindStream(void* handle);

VRAMTRACE_SIM_EXPORT Status CreateEvent(unsigned flags, Event** event);
VRAMTRACE_SIM_EXPORT Status DestroyEvent(Event* event);
[[nodiscard]] VRAMTRACE_SIM_EXPORT Event* FindEvent(void* handle);
VRAMTRACE_SIM_EXPORT Status RecordEvent(Event* event, Stream* stream);
// A stream that waits for an event of a capture joins that capture.
VRAMTRACE_SIM_EXPORT Status WaitEvent(Stream* stream, Event* event);
// Milliseconds between two recorded events: at least 1 us, because callers divide by it.
VRAMTRACE_SIM_EXPORT Status ElapsedMilliseconds(const Event* begin, const Event* end, float* milliseconds);

// `graph` is null for a new one.
VRAMTRACE_SIM_EXPORT Status BeginCapture(Stream* stream, Graph* graph);
VRAMTRACE_SIM_EXPORT Status EndCapture(Stream* stream, Graph** graph);

// The host side of a synchronising call: returns unused pool memory, counts.
VRAMTRACE_SIM_EXPORT void Synchronised(int device);

}  // namespace vramtrace::simulator
