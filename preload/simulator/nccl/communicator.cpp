#include "preload/simulator/nccl/communicator.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <new>

#include "preload/simulator/core/device.h"
#include "preload/simulator/core/memory.h"

namespace vramtrace::simulator::nccl {

Communicator* From(ncclComm_t comm) {
  auto* communicator = reinterpret_cast<Communicator*>(comm);
  return communicator != nullptr && communicator->mark == Communicator::kMark ? communicator : nullptr;
}

ncclResult_t CreateCommunicator(int ranks, int rank, int device, bool ranks_known, const std::string& name,
                                ncclComm_t* comm) {
  if (comm == nullptr || ranks < 1 || rank < 0 || rank >= ranks) return ncclInvalidArgument;
  if (EnsureContext(device) != Status::kOk) return ncclUnhandledCudaError;
  const uint64_t bytes = CommunicatorBytes(ranks);
  if (bytes != 0 && ChargeOutside(device, bytes, kLibrary) != Status::kOk) return ncclUnhandledCudaError;
  auto* communicator = new (std::nothrow) Communicator;
  if (communicator == nullptr) {
    if (bytes != 0) UnchargeOutside(device, bytes, kLibrary);
    return ncclSystemError;
  }
  communicator->ranks = ranks;
  communicator->rank = rank;
  communicator->device = device;
  communicator->charged_bytes = bytes;
  communicator->ranks_known = ranks_known;
  if (!name.empty() && PeersAreProcesses(ranks)) {
    communicator->peers = Peers::Join(name, ranks, rank);
    if (communicator->peers == nullptr) {
      DestroyCommunicator(communicator);
      return ncclRemoteError;
    }
  }
  *comm = reinterpret_cast<ncclComm_t>(communicator);
  return ncclSuccess;
}

void DestroyCommunicator(Communicator* communicator) {
  if (communicator->charged_bytes != 0) {
    UnchargeOutside(communicator->device, communicator->charged_bytes, kLibrary);
  }
  communicator->mark = 0;
  delete communicator;
}

size_t ElementBytes(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
    case ncclFloat8e4m3:
    case ncclFloat8e5m2:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
    default:
      return 0;
  }
}

namespace {

ncclResult_t Create(ncclComm_t* comm, int ranks, const ncclUniqueId& id, int rank) {
  const std::string name(id.internal, strnlen(id.internal, sizeof id.internal));
  return CreateCommunicator(ranks, rank, CurrentDevice(), true, name, comm);
}

// The part of a communicator that chose one colour: every rank tells its own, and all order them by key.
ncclResult_t Split(Communicator* parent, int color, int key, ncclComm_t* child) {
  struct Choice {
    int color;
    int key;
  };
  const Choice mine{color, key};
  int ranks = 0;
  int rank = 0;
  const ncclResult_t result =
      parent->peers->Exchange({reinterpret_cast<const unsigned char*>(&mine), sizeof mine, true},
                              [&](int peer, const Peers::Part& part) {
                                Choice other{};
                                std::memcpy(&other, part.data, sizeof other);
                                if (other.color != color) return;
                                ++ranks;
                                if (other.key < key || (other.key == key && peer < parent->rank)) ++rank;
                              });
  if (result != ncclSuccess) return result;
  const int split = parent->peers->next_split();
  if (color == NCCL_SPLIT_NOCOLOR) return ncclSuccess;
  const std::string name = parent->peers->name() + "-" + std::to_string(split) + "." + std::to_string(color);
  return CreateCommunicator(ranks, rank, parent->device, true, name, child);
}

// Unique among the identifiers of this machine: a program may compare them.
void FillUniqueId(ncclUniqueId* id) {
  static std::atomic<unsigned> made{0};
  std::memset(id, 0, sizeof *id);
  std::snprintf(id->internal, sizeof id->internal, "vramtrace-%d-%u", getpid(), made.fetch_add(1));
}

template <typename Value>
ncclResult_t Answer(ncclComm_t comm, Value Communicator::*field, Value* value) {
  const Communicator* found = From(comm);
  if (found == nullptr || value == nullptr) return ncclInvalidArgument;
  *value = found->*field;
  return ncclSuccess;
}

}  // namespace
}  // namespace vramtrace::simulator::nccl

using namespace vramtrace::simulator::nccl;

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  if (version == nullptr) return ncclInvalidArgument;
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (simulated device)";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInternalError:
      return "internal error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "not supported by the simulated device";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "operation in progress";
    default:
      return "unknown result code";
  }
}

const char* ncclGetLastError(ncclComm_t) { return ""; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  if (id == nullptr) return ncclInvalidArgument;
  FillUniqueId(id);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  return Create(comm, ranks, id, rank);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t*) {
  return Create(comm, ranks, id, rank);
}

ncclResult_t ncclCommInitRankScalable(ncclComm_t* comm, int ranks, int rank, int, ncclUniqueId* ids,
                                      ncclConfig_t*) {
  if (ids == nullptr) return ncclInvalidArgument;
  return Create(comm, ranks, ids[0], rank);
}

ncclResult_t ncclCommInitAll(ncclComm_t* comms, int count, const int* devices) {
  if (comms == nullptr || count < 1) return ncclInvalidArgument;
  for (int i = 0; i < count; ++i) {
    const int device = devices != nullptr ? devices[i] : i;
    const ncclResult_t result = CreateCommunicator(count, i, device, true, "", &comms[i]);
    if (result == ncclSuccess) continue;
    for (int j = 0; j < i; ++j) DestroyCommunicator(From(comms[j]));
    return result;
  }
  return ncclSuccess;
}

// The new rank is the key where that is possible: PyTorch passes the rank in the new group.
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* child, ncclConfig_t*) {
  Communicator* parent = From(comm);
  if (parent == nullptr || child == nullptr) return ncclInvalidArgument;
  *child = nullptr;
  if (parent->peers != nullptr) return Split(parent, color, key, child);
  if (color == NCCL_SPLIT_NOCOLOR) return ncclSuccess;
  const int rank = key >= 0 && key < parent->ranks ? key : parent->rank;
  return CreateCommunicator(parent->ranks, rank, parent->device, parent->ranks == 1, "", child);
}

ncclResult_t ncclCommShrink(ncclComm_t comm, int* excluded, int count, ncclComm_t* child, ncclConfig_t*,
                            int) {
  const Communicator* parent = From(comm);
  if (parent == nullptr || child == nullptr || count < 0 || count >= parent->ranks ||
      (count > 0 && excluded == nullptr)) {
    return ncclInvalidArgument;
  }
  int rank = parent->rank;
  for (int i = 0; i < count; ++i) {
    if (excluded[i] == parent->rank) return ncclInvalidArgument;
    if (excluded[i] < parent->rank) --rank;
  }
  std::string name;
  if (parent->peers != nullptr) {
    name = parent->peers->name() + "-s" +
           std::to_string(excluded != nullptr && count > 0 ? excluded[0] : -1) + "." +
           std::to_string(parent->ranks - count);
  }
  return CreateCommunicator(parent->ranks - count, rank, parent->device, parent->ranks_known, name, child);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return From(comm) != nullptr ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (comm == nullptr) return ncclSuccess;
  Communicator* found = From(comm);
  if (found == nullptr) return ncclInvalidArgument;
  DestroyCommunicator(found);
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  if (const Communicator* found = From(comm); found != nullptr && found->peers != nullptr)
    found->peers->Abort();
  return ncclCommDestroy(comm);
}

ncclResult_t ncclCommRevoke(ncclComm_t comm, int) {
  Communicator* found = From(comm);
  if (found == nullptr) return ncclInvalidArgument;
  found->revoked = true;
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  if (From(comm) == nullptr || error == nullptr) return ncclInvalidArgument;
  *error = ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  return Answer(comm, &Communicator::ranks, count);
}
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  return Answer(comm, &Communicator::rank, rank);
}
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  return Answer(comm, &Communicator::device, device);
}

// Registration is a hint for the transport; there is none. The handles only need to be distinct and not null.
ncclResult_t ncclCommRegister(const ncclComm_t comm, void* buffer, size_t, void** handle) {
  if (From(comm) == nullptr || handle == nullptr) return ncclInvalidArgument;
  *handle = buffer;
  return ncclSuccess;
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void*) {
  return From(comm) != nullptr ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* buffer, size_t, ncclWindow_t* window, int) {
  if (From(comm) == nullptr || window == nullptr) return ncclInvalidArgument;
  *window = static_cast<ncclWindow_t>(buffer);
  return ncclSuccess;
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t) {
  return From(comm) != nullptr ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t window, void** buffer) {
  if (From(comm) == nullptr || buffer == nullptr) return ncclInvalidArgument;
  *buffer = window;
  return ncclSuccess;
}

// Documented: memory of the virtual memory management, so in whole pages of its granularity.
ncclResult_t ncclMemAlloc(void** pointer, size_t bytes) {
  using namespace vramtrace::simulator;
  if (pointer == nullptr) return ncclInvalidArgument;
  const uint64_t pages = (bytes + kPageBytes - 1) / kPageBytes;
  return Allocate(CurrentDevice(), pages * kPageBytes, pointer) == Status::kOk ? ncclSuccess
                                                                               : ncclUnhandledCudaError;
}

ncclResult_t ncclMemFree(void* pointer) {
  using namespace vramtrace::simulator;
  return Free(pointer) == Status::kOk ? ncclSuccess : ncclUnhandledCudaError;
}

}  // extern "C"
