#include "preload/simulator/core/streams.h"

#include <atomic>
#include <ctime>
#include <deque>
#include <mutex>
#include <unordered_set>

#include "preload/simulator/core/device.h"
#include "preload/simulator/core/graphs.h"
#include "preload/simulator/core/pools.h"
#include "preload/simulator/core/work_clock.h"

namespace vramtrace::simulator {
namespace {

constexpr uint64_t kStreamMagic = 0x76745f73747265;
constexpr uint64_t kEventMagic = 0x76745f6576656e;

// Objects are recycled, never returned to the system: a stale handle is recognised, not followed.
struct Objects {
  std::mutex mutex;
  std::deque<Stream> defaults;
  std::vector<Stream*> free_streams;
  std::vector<Event*> free_events;
  std::unordered_set<Capture*> captures;
};

Objects& TheObjects() {
  static auto* objects = [] {
    auto* made = new Objects;
    for (int device = 0; device < DeviceCount(); ++device) {
      Stream stream;
      stream.magic = kStreamMagic;
      stream.id = static_cast<uint64_t>(device) + 1;
      stream.device = device;
      stream.is_default = true;
      made->defaults.push_back(stream);
    }
    return made;
  }();
  return *objects;
}

std::atomic<uint64_t> next_id{1000};

uint64_t Now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000 + static_cast<uint64_t>(time.tv_nsec);
}

template <class Object>
Object* Take(std::vector<Object*>& free, Object fresh) {
  Object* object = nullptr;
  if (free.empty()) {
    object = new Object;
  } else {
    object = free.back();
    free.pop_back();
  }
  *object = fresh;
  return object;
}

}  // namespace

Status CreateStream(unsigned flags, int priority, Stream** stream) {
  if (Status status = EnsureContext(); status != Status::kOk) return status;
  Objects& objects = TheObjects();
  std::lock_guard lock(objects.mutex);
  Stream fresh;
  fresh.magic = kStreamMagic;
  fresh.id = next_id.fetch_add(1);
  fresh.device = CurrentDevice();
  fresh.priority = priority > kLowestStreamPriority    ? kLowestStreamPriority
                   : priority < kHighestStreamPriority ? kHighestStreamPriority
                                                       : priority;
  fresh.flags = flags;
  *stream = Take(objects.free_streams, fresh);
  return Status::kOk;
}

Status DestroyStream(Stream* stream) {
  if (stream == nullptr || stream->is_default) return Status::kInvalidHandle;
  Objects& objects = TheObjects();
  std::lock_guard lock(objects.mutex);
  stream->magic = 0;
  stream->capture = nullptr;
  objects.free_streams.push_back(stream);
  return Status::kOk;
}

Stream* FindStream(void* handle) {
  auto value = reinterpret_cast<uint64_t>(handle);
  if (value <= 2) {
    Objects& objects = TheObjects();
    auto device = static_cast<size_t>(CurrentDevice());
    return device < objects.defaults.size() ? &objects.defaults[device] : nullptr;
  }
  auto* stream = static_cast<Stream*>(handle);
  return value % alignof(Stream) == 0 && stream->magic == kStreamMagic ? stream : nullptr;
}

Status CreateEvent(unsigned flags, Event** event) {
  if (Status status = EnsureContext(); status != Status::kOk) return status;
  Objects& objects = TheObjects();
  std::lock_guard lock(objects.mutex);
  *event = Take(objects.free_events, Event{kEventMagic, CurrentDevice(), flags, 0, nullptr});
  return Status::kOk;
}

Status DestroyEvent(Event* event) {
  if (event == nullptr) return Status::kInvalidHandle;
  Objects& objects = TheObjects();
  std::lock_guard lock(objects.mutex);
  event->magic = 0;
  objects.free_events.push_back(event);
  return Status::kOk;
}

Event* FindEvent(void* handle) {
  auto value = reinterpret_cast<uint64_t>(handle);
  auto* event = static_cast<Event*>(handle);
  return value > 2 && value % alignof(Event) == 0 && event->magic == kEventMagic ? event : nullptr;
}

Status RecordEvent(Event* event, Stream* stream) {
  if (event == nullptr || stream == nullptr) return Status::kInvalidHandle;
  // Times of a device with a clock are what it worked; an event that was recorded has a time.
  event->recorded_ns = HasClock(event->device) ? WorkedNanoseconds(event->device) + 1 : Now();
  event->capture = stream->capture;
  return Status::kOk;
}

Status WaitEvent(Stream* stream, Event* event) {
  if (event == nullptr || stream == nullptr) return Status::kInvalidHandle;
  Objects& objects = TheObjects();
  std::lock_guard lock(objects.mutex);
  // An event may be older than the end of the capture it was recorded in.
  if (event->capture != nullptr && objects.captures.count(event->capture) != 0 &&
      stream->capture == nullptr) {
    stream->capture = event->capture;
    event->capture->joined.push_back(stream);
  }
  return Status::kOk;
}

Status ElapsedMilliseconds(const Event* begin, const Event* end, float* milliseconds) {
  if (begin == nullptr || end == nullptr || begin->recorded_ns == 0 || end->recorded_ns == 0) {
    return Status::kInvalidHandle;
  }
  double elapsed = (static_cast<double>(end->recorded_ns) - static_cast<double>(begin->recorded_ns)) / 1e6;
  *milliseconds = elapsed < 1e-3 ? 1e-3f : static_cast<float>(elapsed);
  return Status::kOk;
}

Status BeginCapture(Stream* stream, Graph* graph) {
  if (stream == nullptr) return Status::kInvalidHandle;
  if (stream->capture != nullptr || stream->is_default) return Status::kInvalidValue;
  auto* capture = new Capture;
  capture->id = next_id.fetch_add(1);
  capture->to_existing_graph = graph != nullptr;
  capture->graph = graph;
  capture->origin = stream;
  if (graph == nullptr) {
    if (Status status = CreateGraph(&capture->graph); status != Status::kOk) {
      delete capture;
      return status;
    }
  }
  Objects& objects = TheObjects();
  std::lock_guard lock(objects.mutex);
  objects.captures.insert(capture);
  stream->capture = capture;
  return Status::kOk;
}

Status EndCapture(Stream* stream, Graph** graph) {
  *graph = nullptr;
  if (stream == nullptr) return Status::kInvalidHandle;
  Objects& objects = TheObjects();
  std::lock_guard lock(objects.mutex);
  Capture* capture = stream->capture;
  if (capture == nullptr || capture->origin != stream) return Status::kInvalidValue;
  for (Stream* joined : capture->joined) {
    if (joined->capture == capture) joined->capture = nullptr;
  }
  stream->capture = nullptr;
  *graph = capture->graph;
  objects.captures.erase(capture);
  delete capture;
  return Status::kOk;
}

void Synchronised(int device) {
  if (HasContext(device)) TrimPoolsToThreshold(device);
}

}  // namespace vramtrace::simulator
