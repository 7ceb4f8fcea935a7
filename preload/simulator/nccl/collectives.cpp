// The collective operations: memory moves as far as this rank can know what its peers hold.

#include <algorithm>
#include <vector>

#include "preload/simulator/core/contents.h"
#include "preload/simulator/nccl/communicator.h"
#include "preload/simulator/nccl/group.h"
#include "preload/simulator/nccl/reduction.h"
#include "preload/simulator/stubs/library_handle.h"

namespace vramtrace::simulator::nccl {
namespace {

struct Stateless {};
using Launcher = LibraryHandle<Stateless, 0>;

struct Call {
  const Communicator* communicator = nullptr;
  uint64_t bytes = 0;
  ncclResult_t result = ncclSuccess;
};

// Checks what all operations share and counts the work.
Call Begin(ncclComm_t comm, size_t count, ncclDataType_t type, int peer, cudaStream_t stream,
           const char* function) {
  const Communicator* communicator = From(comm);
  const size_t width = ElementBytes(type);
  if (communicator == nullptr || width == 0 || peer < 0 || peer >= communicator->ranks) {
    return {nullptr, 0, ncclInvalidArgument};
  }
  if (communicator->revoked) return {nullptr, 0, ncclInvalidUsage};
  Launcher::LaunchOn(stream, kLibrary, function);
  return {communicator, count * width, ncclSuccess};
}

const void* Part(const void* buffer, uint64_t bytes, int index) {
  return static_cast<const unsigned char*>(buffer) + bytes * static_cast<uint64_t>(index);
}

void* Part(void* buffer, uint64_t bytes, int index) {
  return static_cast<unsigned char*>(buffer) + bytes * static_cast<uint64_t>(index);
}

void Move(void* to, const void* from, uint64_t bytes) {
  if (to != from && to != nullptr && from != nullptr && bytes != 0) (void)Copy(to, from, bytes);
}

void Reduce(void* to, const void* from, const Call& call, ncclDataType_t type, ncclRedOp_t operation) {
  const size_t width = ElementBytes(type);
  if (call.bytes != 0 && call.bytes <= kComputedBytes) {
    std::vector<unsigned char> values(call.bytes);
    if (Peek(values.data(), from, call.bytes) == Status::kOk &&
        ReduceIdentical(values.data(), call.bytes / width, type, operation, call.communicator->ranks)) {
      (void)Store(to, values.data(), call.bytes);
      return;
    }
  }
  Move(to, from, call.bytes);
}

// Every part of a gathered buffer, or this rank's own where the number of parts is not known.
void SpreadOver(void* to, const void* from, const Call& call) {
  const Communicator& communicator = *call.communicator;
  if (!communicator.ranks_known) {
    Move(Part(to, call.bytes, communicator.rank), from, call.bytes);
    return;
  }
  for (int i = 0; i < communicator.ranks; ++i) Move(Part(to, call.bytes, i), from, call.bytes);
}

}  // namespace
}  // namespace vramtrace::simulator::nccl

using namespace vramtrace::simulator::nccl;

extern "C" {

ncclResult_t ncclGroupStart() {
  BeginGroup();
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() { return EndGroup() ? ncclSuccess : ncclInvalidUsage; }

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  const Call call = Begin(comm, count, type, 0, stream, "ncclAllReduce");
  if (call.result == ncclSuccess) Reduce(to, from, call, type, operation);
  return call.result;
}

ncclResult_t ncclReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                        int root, ncclComm_t comm, cudaStream_t stream) {
  const Call call = Begin(comm, count, type, root, stream, "ncclReduce");
  if (call.result == ncclSuccess && root == call.communicator->rank) Reduce(to, from, call, type, operation);
  return call.result;
}

ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  const Call call = Begin(comm, count, type, 0, stream, "ncclReduceScatter");
  if (call.result != ncclSuccess) return call.result;
  Reduce(to, Part(from, call.bytes, call.communicator->rank), call, type, operation);
  return ncclSuccess;
}

ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  const Call call = Begin(comm, count, type, 0, stream, "ncclAllGather");
  if (call.result == ncclSuccess) SpreadOver(to, from, call);
  return call.result;
}

ncclResult_t ncclAlltoAll(const void* from, void* to, size_t count, ncclDataType_t type, ncclComm_t comm,
                          cudaStream_t stream) {
  const Call call = Begin(comm, count, type, 0, stream, "ncclAlltoAll");
  if (call.result != ncclSuccess) return call.result;
  SpreadOver(to, Part(from, call.bytes, call.communicator->rank), call);
  return ncclSuccess;
}

ncclResult_t ncclGather(const void* from, void* to, size_t count, ncclDataType_t type, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  const Call call = Begin(comm, count, type, root, stream, "ncclGather");
  if (call.result == ncclSuccess && root == call.communicator->rank) SpreadOver(to, from, call);
  return call.result;
}

ncclResult_t ncclScatter(const void* from, void* to, size_t count, ncclDataType_t type, int root,
                         ncclComm_t comm, cudaStream_t stream) {
  const Call call = Begin(comm, count, type, root, stream, "ncclScatter");
  if (call.result != ncclSuccess) return call.result;
  // Only the root has a send buffer; from another root nothing is known, and the part reads as zero.
  if (root == call.communicator->rank) {
    Move(to, Part(from, call.bytes, root), call.bytes);
  } else {
    vramtrace::simulator::Clear(to, call.bytes);
  }
  return ncclSuccess;
}

ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  const Call call = Begin(comm, count, type, root, stream, "ncclBroadcast");
  if (call.result == ncclSuccess) {
    Submit({Transfer::Kind::kBroadcast, call.communicator, root, from, to, call.bytes});
  }
  return call.result;
}

ncclResult_t ncclBcast(void* buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                       cudaStream_t stream) {
  return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  const Call call = Begin(comm, count, type, peer, stream, "ncclSend");
  if (call.result == ncclSuccess) {
    Submit({Transfer::Kind::kSend, call.communicator, peer, from, nullptr, call.bytes});
  }
  return call.result;
}

ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  const Call call = Begin(comm, count, type, peer, stream, "ncclRecv");
  if (call.result == ncclSuccess) {
    Submit({Transfer::Kind::kReceive, call.communicator, peer, nullptr, to, call.bytes});
  }
  return call.result;
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* operation, void* scalar, ncclDataType_t type,
                                      ncclScalarResidence_t residence, ncclComm_t comm) {
  const size_t width = ElementBytes(type);
  if (operation == nullptr || scalar == nullptr || width == 0 || From(comm) == nullptr)
    return ncclInvalidArgument;
  unsigned char element[8] = {};
  if (residence == ncclScalarHostImmediate) {
    std::copy_n(static_cast<const unsigned char*>(scalar), width, element);
  } else if (vramtrace::simulator::Peek(element, scalar, width) != vramtrace::simulator::Status::kOk) {
    return ncclInvalidArgument;
  }
  *operation = CreatePreMultiplied(Load(element, type));
  return ncclSuccess;
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t operation, ncclComm_t comm) {
  return From(comm) != nullptr && operation >= ncclNumOps ? ncclSuccess : ncclInvalidArgument;
}

}  // extern "C"
