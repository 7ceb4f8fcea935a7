// Plans, their work areas and transforms that do nothing.
//
// Work area: the bytes of the transform's complex data, the estimate that NVIDIA's manual gives ("cuFFT ...
// work area", cufftEstimate). Small powers of two need none on a card; that is not published by size.

#include "preload/simulator/cufft/plan.h"

#include <cufftXt.h>

#include <map>
#include <memory>
#include <mutex>

#include "preload/simulator/core/device.h"
#include "preload/simulator/core/memory.h"
#include "preload/simulator/stubs/library_handle.h"

namespace vramtrace::simulator::cufft {
namespace {

struct Stateless {};
using Launcher = LibraryHandle<Stateless, 0>;

struct Plans {
  std::mutex mutex;
  std::map<cufftHandle, std::unique_ptr<Plan>> live;
  cufftHandle next = 1;
};

Plans& ThePlans() {
  static auto* plans = new Plans;
  return *plans;
}

cufftResult Create(cufftHandle* handle) {
  if (handle == nullptr) return CUFFT_INVALID_VALUE;
  if (EnsureContext() != Status::kOk) return CUFFT_INTERNAL_ERROR;
  Plans& plans = ThePlans();
  std::lock_guard lock(plans.mutex);
  *handle = plans.next++;
  plans.live[*handle] = std::make_unique<Plan>();
  plans.live[*handle]->device = CurrentDevice();
  return CUFFT_SUCCESS;
}

bool IsDouble(cufftType type) { return type == CUFFT_D2Z || type == CUFFT_Z2D || type == CUFFT_Z2Z; }

uint64_t ComplexBytes(cudaDataType type) {
  switch (type) {
    case CUDA_R_64F:
    case CUDA_C_64F:
      return 16;
    case CUDA_R_16F:
    case CUDA_C_16F:
    case CUDA_R_16BF:
    case CUDA_C_16BF:
      return 4;
    default:
      return 8;
  }
}

template <typename Size>
cufftResult Make(cufftHandle handle, int rank, const Size* sizes, uint64_t element, long long batch,
                 size_t* work) {
  Plan* plan = Find(handle);
  if (plan == nullptr) return CUFFT_INVALID_PLAN;
  if (rank < 1 || rank > 3 || sizes == nullptr || batch < 1) return CUFFT_INVALID_SIZE;
  uint64_t bytes = element * static_cast<uint64_t>(batch);
  for (int i = 0; i < rank; ++i) {
    if (sizes[i] < 1 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(sizes[i]), &bytes)) {
      return CUFFT_INVALID_SIZE;
    }
  }
  plan->work_bytes = bytes;
  if (plan->allocates && Allocate(plan->device, bytes, &plan->own_area) != Status::kOk)
    return CUFFT_ALLOC_FAILED;
  if (work != nullptr) *work = bytes;
  return CUFFT_SUCCESS;
}

cufftResult Execute(cufftHandle handle, const char* function) {
  Plan* plan = Find(handle);
  if (plan == nullptr) return CUFFT_INVALID_PLAN;
  Launcher::LaunchOn(plan->stream, kLibrary, function);
  return CUFFT_SUCCESS;
}

}  // namespace

Plan* Find(cufftHandle handle) {
  Plans& plans = ThePlans();
  std::lock_guard lock(plans.mutex);
  auto found = plans.live.find(handle);
  return found == plans.live.end() ? nullptr : found->second.get();
}

}  // namespace vramtrace::simulator::cufft

using namespace vramtrace::simulator::cufft;

extern "C" {

cufftResult cufftCreate(cufftHandle* handle) { return Create(handle); }

cufftResult cufftDestroy(cufftHandle handle) {
  Plan* plan = Find(handle);
  if (plan == nullptr) return CUFFT_INVALID_PLAN;
  if (plan->own_area != nullptr) (void)vramtrace::simulator::Free(plan->own_area);
  Plans& plans = ThePlans();
  std::lock_guard lock(plans.mutex);
  plans.live.erase(handle);
  return CUFFT_SUCCESS;
}

cufftResult cufftSetStream(cufftHandle handle, cudaStream_t stream) {
  Plan* plan = Find(handle);
  if (plan == nullptr) return CUFFT_INVALID_PLAN;
  plan->stream = stream;
  return CUFFT_SUCCESS;
}

cufftResult cufftSetAutoAllocation(cufftHandle handle, int automatic) {
  Plan* plan = Find(handle);
  if (plan == nullptr) return CUFFT_INVALID_PLAN;
  plan->allocates = automatic != 0;
  return CUFFT_SUCCESS;
}

cufftResult cufftSetWorkArea(cufftHandle handle, void*) {
  return Find(handle) == nullptr ? CUFFT_INVALID_PLAN : CUFFT_SUCCESS;
}

cufftResult cufftGetSize(cufftHandle handle, size_t* bytes) {
  const Plan* plan = Find(handle);
  if (plan == nullptr) return CUFFT_INVALID_PLAN;
  if (bytes == nullptr) return CUFFT_INVALID_VALUE;
  *bytes = plan->work_bytes;
  return CUFFT_SUCCESS;
}

cufftResult cufftXtMakePlanMany(cufftHandle handle, int rank, long long* sizes, long long*, long long,
                                long long, cudaDataType, long long*, long long, long long, cudaDataType,
                                long long batch, size_t* work, cudaDataType execution) {
  return Make(handle, rank, sizes, ComplexBytes(execution), batch, work);
}

cufftResult cufftMakePlanMany(cufftHandle handle, int rank, int* sizes, int*, int, int, int*, int, int,
                              cufftType type, int batch, size_t* work) {
  return Make(handle, rank, sizes, IsDouble(type) ? 16 : 8, batch, work);
}

cufftResult cufftMakePlanMany64(cufftHandle handle, int rank, long long* sizes, long long*, long long,
                                long long, long long*, long long, long long, cufftType type, long long batch,
                                size_t* work) {
  return Make(handle, rank, sizes, IsDouble(type) ? 16 : 8, batch, work);
}

cufftResult cufftXtExec(cufftHandle handle, void*, void*, int) { return Execute(handle, "cufftXtExec"); }
cufftResult cufftExecC2C(cufftHandle handle, cufftComplex*, cufftComplex*, int) {
  return Execute(handle, "cufftExecC2C");
}
cufftResult cufftExecR2C(cufftHandle handle, cufftReal*, cufftComplex*) {
  return Execute(handle, "cufftExecR2C");
}
cufftResult cufftExecC2R(cufftHandle handle, cufftComplex*, cufftReal*) {
  return Execute(handle, "cufftExecC2R");
}
cufftResult cufftExecZ2Z(cufftHandle handle, cufftDoubleComplex*, cufftDoubleComplex*, int) {
  return Execute(handle, "cufftExecZ2Z");
}
cufftResult cufftExecD2Z(cufftHandle handle, cufftDoubleReal*, cufftDoubleComplex*) {
  return Execute(handle, "cufftExecD2Z");
}
cufftResult cufftExecZ2D(cufftHandle handle, cufftDoubleComplex*, cufftDoubleReal*) {
  return Execute(handle, "cufftExecZ2D");
}

}  // extern "C"
