// The backend interface's functions.

#include <new>

#include "preload/simulator/cudnn/backend_answers.h"
#include "preload/simulator/cudnn/handle.h"
#include "preload/simulator/cudnn/workspace.h"

using namespace vramtrace::simulator::cudnn;

namespace {

bool IsPlanAndPack(cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  const auto* found_plan = BackendDescriptor::From(plan);
  const auto* found_pack = BackendDescriptor::From(pack);
  return found_plan != nullptr && found_pack != nullptr && found_plan->content().finalized &&
         found_pack->content().finalized &&
         found_plan->content().type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR &&
         found_pack->content().type == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR;
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* descriptor) {
  if (descriptor == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (type < CUDNN_BACKEND_POINTWISE_DESCRIPTOR || type > CUDNN_BACKEND_OPERATION_ROPE_BWD_DESCRIPTOR) {
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  *descriptor = new (std::nothrow) BackendDescriptor(type);
  return *descriptor != nullptr ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  auto* found = BackendDescriptor::From(descriptor);
  if (found == nullptr) return CUDNN_STATUS_BAD_PARAM;
  found->Retire();
  delete found;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendInitialize(cudnnBackendDescriptor_t descriptor) {
  return BackendDescriptor::From(descriptor) != nullptr ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  auto* found = BackendDescriptor::From(descriptor);
  if (found == nullptr) return CUDNN_STATUS_BAD_PARAM;
  found->Finalize();
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void* elements) {
  auto* found = BackendDescriptor::From(descriptor);
  if (found == nullptr) return CUDNN_STATUS_BAD_PARAM;
  if (found->content().finalized) return CUDNN_STATUS_NOT_INITIALIZED;
  return found->Set(name, type, count, elements);
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                       cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                       int64_t requested, int64_t* count, void* elements) {
  const auto* found = BackendDescriptor::From(descriptor);
  if (found == nullptr) return CUDNN_STATUS_BAD_PARAM;
  if (!found->content().finalized) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
  const cudnnStatus_t kept = found->Get(name, type, requested, count, elements);
  if (kept != CUDNN_STATUS_NOT_SUPPORTED) return kept;
  const cudnnStatus_t answered = Answer(found->content(), name, type, requested, count, elements);
  if (answered == CUDNN_STATUS_NOT_SUPPORTED && vramtrace::simulator::Verbose()) {
    vramtrace::simulator::Log("cudnnBackendGetAttribute: attribute %d of descriptor type %d is not answered",
                              static_cast<int>(name), static_cast<int>(found->content().type));
  }
  return answered;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
  Handle* found = From(handle);
  if (found == nullptr) return CUDNN_STATUS_NOT_INITIALIZED;
  if (!IsPlanAndPack(plan, pack)) return CUDNN_STATUS_BAD_PARAM;
  found->Launch(kLibrary, "cudnnBackendExecute");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetExecutionPlanWorkspaceSize(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                                 cudnnBackendDescriptor_t pack, size_t* bytes) {
  if (From(handle) == nullptr) return CUDNN_STATUS_NOT_INITIALIZED;
  if (!IsPlanAndPack(plan, pack) || bytes == nullptr) return CUDNN_STATUS_BAD_PARAM;
  *bytes = static_cast<size_t>(PlanWorkspaceBytes());
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
