#pragma once
// What cuDNN itself would compute: heuristics with one engine configuration, an engine without knobs and
// notes, plans with the modelled workspace.

#include "preload/simulator/cudnn/backend_descriptor.h"

namespace vramtrace::simulator::cudnn {

// CUDNN_STATUS_NOT_SUPPORTED for an attribute that no row of the table answers. Success always writes *count
// and, where asked for, the elements: a caller may keep what it had put there before (cudnn_frontend rejects
// a plan whose shared memory it still reads as INT32_MAX).
cudnnStatus_t Answer(const BackendContent& content, cudnnBackendAttributeName_t name,
                     cudnnBackendAttributeType_t type, int64_t requested, int64_t* count, void* elements);

}  // namespace vramtrace::simulator::cudnn
