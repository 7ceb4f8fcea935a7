#include "preload/simulator/cudnn/backend_answers.h"

#include <cstring>
#include <memory>
#include <utility>

#include "preload/simulator/cudnn/workspace.h"

namespace vramtrace::simulator::cudnn {
namespace {

using Answerer = cudnnStatus_t (*)(const BackendContent& content, int64_t requested, int64_t* count,
                                   void* elements);

template <typename Value>
cudnnStatus_t One(Value value, int64_t requested, int64_t* count, void* elements) {
  if (count != nullptr) *count = 1;
  if (requested > 0) {
    if (elements == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    std::memcpy(elements, &value, sizeof value);
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t None(const BackendContent&, int64_t, int64_t* count, void*) {
  if (count == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  *count = 0;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t Zero32(const BackendContent&, int64_t requested, int64_t* count, void* elements) {
  return One<int32_t>(0, requested, count, elements);
}

cudnnStatus_t Zero64(const BackendContent&, int64_t requested, int64_t* count, void* elements) {
  return One<int64_t>(0, requested, count, elements);
}

cudnnStatus_t One64(const BackendContent&, int64_t requested, int64_t* count, void* elements) {
  return One<int64_t>(1, requested, count, elements);
}

cudnnStatus_t False(const BackendContent&, int64_t requested, int64_t* count, void* elements) {
  return One<bool>(false, requested, count, elements);
}

cudnnStatus_t Workspace(const BackendContent&, int64_t requested, int64_t* count, void* elements) {
  return One<int64_t>(PlanWorkspaceBytes(), requested, count, elements);
}

// A descriptor of the library's own making, put into the first of the caller's.
cudnnStatus_t FillFirst(BackendContentRef made, int64_t requested, int64_t* count, void* elements) {
  if (count != nullptr) *count = 1;
  if (requested <= 0) return CUDNN_STATUS_SUCCESS;
  if (elements == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  BackendDescriptor* filled = BackendDescriptor::From(*static_cast<cudnnBackendDescriptor_t*>(elements));
  return filled == nullptr ? CUDNN_STATUS_BAD_PARAM_NULL_POINTER : filled->Fill(std::move(made));
}

BackendContentRef Made(cudnnBackendDescriptorType_t type, cudnnBackendAttributeName_t name,
                       const BackendContentRef& referred) {
  auto made = std::make_shared<BackendContent>();
  made->type = type;
  made->finalized = true;
  if (referred != nullptr) {
    made->attributes[name] = BackendAttribute{CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, {}, {referred}};
  }
  return made;
}

cudnnStatus_t HeuristicResults(const BackendContent& content, int64_t requested, int64_t* count,
                               void* elements) {
  const BackendContentRef engine = Made(CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_OPERATION_GRAPH,
                                        content.FindDescriptor(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH));
  return FillFirst(Made(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, CUDNN_ATTR_ENGINECFG_ENGINE, engine), requested,
                   count, elements);
}

struct Row {
  cudnnBackendDescriptorType_t descriptor;
  cudnnBackendAttributeName_t attribute;
  cudnnBackendAttributeType_t type;
  Answerer answer;
};

// A row for each attribute of cuDNN's own making that cudnn_frontend reads. Shared memory 0: the frontend
// rejects a plan that wants more than the device has. No numerical and behaviour notes: filters by notes
// (deterministic, tensor cores) keep the engine.
constexpr Row kRows[] = {
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
     HeuristicResults},
    {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
     None},
    {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, CUDNN_ATTR_ENGINECFG_INTERMEDIATE_INFO,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, None},
    {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, CUDNN_TYPE_INT64, Workspace},
    {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED, CUDNN_TYPE_INT32, Zero32},
    {CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, Zero64},
    {CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_KNOB_INFO, CUDNN_TYPE_BACKEND_DESCRIPTOR, None},
    {CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, None},
    {CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, None},
    {CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_LAYOUT_INFO, CUDNN_TYPE_BACKEND_DESCRIPTOR, None},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
     Workspace},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_COMPUTED_INTERMEDIATE_UIDS,
     CUDNN_TYPE_INT64, None},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_RUN_ONLY_INTERMEDIATE_UIDS,
     CUDNN_TYPE_INT64, None},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, CUDNN_TYPE_INT64,
     One64},
    {CUDNN_BACKEND_KERNEL_CACHE_DESCRIPTOR, CUDNN_ATTR_KERNEL_CACHE_IS_ENGINECFG_KERNEL_CACHED,
     CUDNN_TYPE_BOOLEAN, False},
};

}  // namespace

cudnnStatus_t Answer(const BackendContent& content, cudnnBackendAttributeName_t name,
                     cudnnBackendAttributeType_t type, int64_t requested, int64_t* count, void* elements) {
  for (const Row& row : kRows) {
    if (row.descriptor != content.type || row.attribute != name) continue;
    if (row.type != type) return CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE;
    return row.answer(content, requested, count, elements);
  }
  return CUDNN_STATUS_NOT_SUPPORTED;
}

}  // namespace vramtrace::simulator::cudnn
