#include "preload/simulator/core/streams.h"

#include "preload/simulator/core/graphs.h"
#include "preload/simulator/cuda/driver.h"

using namespace vramtrace::simulator;
using namespace vramtrace::simulator::driver;

namespace {

CUresult Create(CUstream* handle, unsigned flags, int priority) {
  Stream* stream = nullptr;
  Status status = CreateStream(flags, priority, &stream);
  if (status == Status::kOk) *handle = reinterpret_cast<CUstream>(stream);
  return Result(status);
}

template <class Use>
CUresult With(CUstream handle, Use use) {
  Stream* stream = FindStream(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  use(*stream);
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuStreamCreate(CUstream* stream, unsigned flags) { return Create(stream, flags, 0); }

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  return Create(stream, flags, priority);
}

CUresult cuStreamDestroy(CUstream stream) { return Result(DestroyStream(FindStream(stream))); }

CUresult cuStreamQuery(CUstream stream) {
  return With(stream, [](const Stream&) {});
}

CUresult cuStreamSynchronize(CUstream stream) {
  return With(stream, [](const Stream& found) { Synchronised(found.device); });
}

CUresult cuStreamGetPriority(CUstream stream, int* priority) {
  return With(stream, [&](const Stream& found) { *priority = found.priority; });
}

CUresult cuStreamGetFlags(CUstream stream, unsigned* flags) {
  return With(stream, [&](const Stream& found) { *flags = found.flags; });
}

CUresult cuStreamGetId(CUstream stream, unsigned long long* id) {
  return With(stream, [&](const Stream& found) { *id = found.id; });
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  return With(stream, [&](const Stream& found) { *context = PrimaryContext(found.device); });
}

CUresult cuStreamGetDevice(CUstream stream, CUdevice* device) {
  return With(stream, [&](const Stream& found) { *device = found.device; });
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return With(stream, [&](const Stream& found) {
    *status = found.capture == nullptr ? CU_STREAM_CAPTURE_STATUS_NONE : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  });
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned /*flags*/) {
  return Result(WaitEvent(FindStream(stream), FindEvent(event)));
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* data, unsigned /*flags*/) {
  return With(stream, [&](const Stream&) { callback(stream, CUDA_SUCCESS, data); });
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  return With(stream, [&](const Stream&) { function(data); });
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  static thread_local CUstreamCaptureMode current = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::swap(current, *mode);
  return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent* handle, unsigned flags) {
  Event* event = nullptr;
  Status status = CreateEvent(flags, &event);
  if (status == Status::kOk) *handle = reinterpret_cast<CUevent>(event);
  return Result(status);
}

CUresult cuEventDestroy(CUevent event) { return Result(DestroyEvent(FindEvent(event))); }

CUresult cuEventRecord(CUevent event, CUstream stream) {
  return Result(RecordEvent(FindEvent(event), FindStream(stream)));
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned /*flags*/) {
  return Result(RecordEvent(FindEvent(event), FindStream(stream)));
}

CUresult cuEventQuery(CUevent event) {
  return FindEvent(event) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent handle) {
  Event* event = FindEvent(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Synchronised(event->device);
  return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent begin, CUevent end) {
  return Result(ElapsedMilliseconds(FindEvent(begin), FindEvent(end), milliseconds));
}

}  // extern "C"
