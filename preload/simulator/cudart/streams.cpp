#include "preload/simulator/core/streams.h"

#include <utility>

#include "preload/simulator/core/graphs.h"
#include "preload/simulator/cudart/graphs.h"
#include "preload/simulator/cudart/runtime.h"

using namespace vramtrace::simulator;
using runtime::Fail;
using runtime::Result;

namespace {

cudaError_t Create(cudaStream_t* handle, unsigned flags, int priority) {
  Stream* stream = nullptr;
  Status status = CreateStream(flags, priority, &stream);
  if (status == Status::kOk) *handle = reinterpret_cast<cudaStream_t>(stream);
  return Result(status);
}

// Runs use(stream) when the handle is one.
template <class Use>
cudaError_t With(cudaStream_t handle, Use use) {
  Stream* stream = FindStream(handle);
  if (stream == nullptr) return Result(Status::kInvalidHandle);
  use(*stream);
  return cudaSuccess;
}

template <class Use>
cudaError_t WithEvent(cudaEvent_t handle, Use use) {
  Event* event = FindEvent(handle);
  return event == nullptr ? Result(Status::kInvalidHandle) : use(*event);
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return Create(stream, cudaStreamDefault, 0); }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return Create(stream, flags, 0);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return Create(stream, flags, priority);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) { return Result(DestroyStream(FindStream(stream))); }

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return With(stream, [](const Stream&) {});  // all work is done
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return With(stream, [](const Stream& found) { Synchronised(found.device); });
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return With(stream, [&](const Stream& found) { *priority = found.priority; });
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  return With(stream, [&](const Stream& found) { *flags = found.flags; });
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return With(stream, [&](const Stream& found) { *id = found.id; });
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return With(stream, [&](const Stream& found) { *device = found.device; });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  return Result(WaitEvent(FindStream(stream), FindEvent(event)));
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return With(stream, [&](const Stream& found) {
    *status = found.capture == nullptr ? cudaStreamCaptureStatusNone : cudaStreamCaptureStatusActive;
  });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode /*mode*/) {
  Status status = BeginCapture(FindStream(stream), nullptr);
  return status == Status::kInvalidValue ? Fail(cudaErrorIllegalState) : Result(status);
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t handle, cudaGraph_t graph,
                                          const cudaGraphNode_t* dependencies,
                                          const cudaGraphEdgeData* /*edges*/, size_t count,
                                          cudaStreamCaptureMode /*mode*/) {
  Graph* into = FindGraph(graph);
  if (into == nullptr) return Result(Status::kInvalidHandle);
  Stream* stream = FindStream(handle);
  if (Status status = BeginCapture(stream, into); status != Status::kOk) return Result(status);
  return Result(SetCaptureFrontier(stream, runtime::Nodes(dependencies), count, false));
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  Graph* captured = nullptr;
  Status status = EndCapture(FindStream(stream), &captured);
  *graph = reinterpret_cast<cudaGraph_t>(captured);
  return status == Status::kInvalidValue ? Fail(cudaErrorIllegalState) : Result(status);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  static thread_local cudaStreamCaptureMode current = cudaStreamCaptureModeGlobal;
  std::swap(current, *mode);
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* handle, unsigned flags) {
  Event* event = nullptr;
  Status status = CreateEvent(flags, &event);
  if (status == Status::kOk) *handle = reinterpret_cast<cudaEvent_t>(event);
  return Result(status);
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventDestroy(cudaEvent_t event) { return Result(DestroyEvent(FindEvent(event))); }

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return Result(RecordEvent(FindEvent(event), FindStream(stream)));
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned /*flags*/) {
  return Result(RecordEvent(FindEvent(event), FindStream(stream)));
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return WithEvent(event, [](const Event&) { return cudaSuccess; });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return WithEvent(event, [](const Event& found) {
    Synchronised(found.device);
    return cudaSuccess;
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  const Event* first = FindEvent(begin);
  const Event* last = FindEvent(end);
  for (const Event* event : {first, last}) {
    if (event != nullptr && (event->flags & cudaEventDisableTiming) != 0)
      return Result(Status::kInvalidHandle);
  }
  return Result(ElapsedMilliseconds(first, last, milliseconds));
}

}  // extern "C"
