// The collective operations: memory moves as far as this rank can know what its peers hold.

#include <algorithm>
#include <vector>

#include "preload/simulator/core/contents.h"
#include "preload/simulator/core/values.h"
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

// What this rank hands in: the bytes of a device buffer, at most kSlotBytes.
struct Bytes {
  explicit Bytes(const void* from, uint64_t count) : values(count) {
    good = count == 0 || Peek(values.data(), from, count) == Status::kOk;
    known = count == 0 || KnowledgeOf(reinterpret_cast<uint64_t>(from), count) == Knowledge::kKnown;
  }
  [[nodiscard]] Peers::Part part() const { return {values.data(), values.size(), known}; }
  std::vector<unsigned char> values;
  bool good = false;
  bool known = false;
};

void Keep(void* to, const void* values, uint64_t bytes, bool known) {
  if (bytes == 0 || Store(to, values, bytes) != Status::kOk || known) return;
  MarkWritten(reinterpret_cast<uint64_t>(to), bytes, false);
}

// Real peers, and a payload that they move.
bool Exchanges(const Call& call, uint64_t handed_in) {
  return call.communicator->peers != nullptr && handed_in != 0 && handed_in <= kSlotBytes;
}

// `keep`: whether this rank gets the result. The result is part `index` of what every rank hands in.
ncclResult_t ReduceWithPeers(void* to, const void* from, const Call& call, ncclDataType_t type,
                             ncclRedOp_t operation, uint64_t handed_in, int index, bool keep) {
  const uint64_t count = call.bytes / ElementBytes(type);
  Bytes mine(from, handed_in);
  ScaleBefore(mine.values.data(), handed_in / ElementBytes(type), type, operation);
  std::vector<unsigned char> result;
  bool known = true;
  const ncclResult_t status =
      call.communicator->peers->Exchange(mine.part(), [&](int, const Peers::Part& part) {
        known = known && part.known;
        const unsigned char* values = part.data + call.bytes * static_cast<uint64_t>(index);
        if (part.bytes != handed_in) return;
        if (result.empty()) {
          result.assign(values, values + call.bytes);
        } else {
          Combine(result.data(), values, count, type, operation);
        }
      });
  if (status != ncclSuccess || !keep || result.empty()) return status;
  DivideAfter(result.data(), count, type, operation, call.communicator->ranks);
  Keep(to, result.data(), call.bytes, known);
  return ncclSuccess;
}

// Every rank's part `index` of what it hands in, one behind the other.
ncclResult_t GatherFromPeers(void* to, const void* from, const Call& call, uint64_t handed_in, int index,
                             bool keep) {
  const Bytes mine(from, handed_in);
  return call.communicator->peers->Exchange(mine.part(), [&](int peer, const Peers::Part& part) {
    if (!keep || part.bytes != handed_in) return;
    Keep(Part(to, call.bytes, peer), part.data + call.bytes * static_cast<uint64_t>(index), call.bytes,
         part.known);
  });
}

ncclResult_t Reduce(void* to, const void* from, const Call& call, ncclDataType_t type, ncclRedOp_t operation,
                    bool keep = true) {
  if (Exchanges(call, call.bytes) && CanCombine(type, operation)) {
    return ReduceWithPeers(to, from, call, type, operation, call.bytes, 0, keep);
  }
  if (!keep) return ncclSuccess;
  const size_t width = ElementBytes(type);
  if (call.bytes != 0 && call.bytes <= kComputedBytes) {
    const bool known = KnowledgeOf(reinterpret_cast<uint64_t>(from), call.bytes) == Knowledge::kKnown;
    std::vector<unsigned char> values(call.bytes);
    if (Peek(values.data(), from, call.bytes) == Status::kOk &&
        ReduceIdentical(values.data(), call.bytes / width, type, operation, call.communicator->ranks)) {
      Keep(to, values.data(), call.bytes, known);
      return ncclSuccess;
    }
  }
  Move(to, from, call.bytes);
  return ncclSuccess;
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

uint64_t Whole(const Call& call) { return call.bytes * static_cast<uint64_t>(call.communicator->ranks); }

}  // namespace
}  // namespace vramtrace::simulator::nccl

using namespace vramtrace::simulator::nccl;

extern "C" {

ncclResult_t ncclGroupStart() {
  BeginGroup();
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() { return EndGroup(); }

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  const Call call = Begin(comm, count, type, 0, stream, "ncclAllReduce");
  return call.result == ncclSuccess ? Reduce(to, from, call, type, operation) : call.result;
}

ncclResult_t ncclReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                        int root, ncclComm_t comm, cudaStream_t stream) {
  const Call call = Begin(comm, count, type, root, stream, "ncclReduce");
  if (call.result != ncclSuccess) return call.result;
  return Reduce(to, from, call, type, operation, root == call.communicator->rank);
}

ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  const Call call = Begin(comm, count, type, 0, stream, "ncclReduceScatter");
  if (call.result != ncclSuccess) return call.result;
  const int rank = call.communicator->rank;
  if (Exchanges(call, Whole(call)) && CanCombine(type, operation)) {
    return ReduceWithPeers(to, from, call, type, operation, Whole(call), rank, true);
  }
  Call alone = call;
  if (alone.communicator->peers == nullptr)
    return Reduce(to, Part(from, call.bytes, rank), alone, type, operation);
  Move(to, Part(from, call.bytes, rank), call.bytes);  // too large to exchange
  return ncclSuccess;
}

ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  const Call call = Begin(comm, count, type, 0, stream, "ncclAllGather");
  if (call.result != ncclSuccess) return call.result;
  if (Exchanges(call, call.bytes)) return GatherFromPeers(to, from, call, call.bytes, 0, true);
  SpreadOver(to, from, call);
  return ncclSuccess;
}

ncclResult_t ncclAlltoAll(const void* from, void* to, size_t count, ncclDataType_t type, ncclComm_t comm,
                          cudaStream_t stream) {
  const Call call = Begin(comm, count, type, 0, stream, "ncclAlltoAll");
  if (call.result != ncclSuccess) return call.result;
  const int rank = call.communicator->rank;
  if (Exchanges(call, Whole(call))) return GatherFromPeers(to, from, call, Whole(call), rank, true);
  SpreadOver(to, Part(from, call.bytes, rank), call);
  return ncclSuccess;
}

ncclResult_t ncclGather(const void* from, void* to, size_t count, ncclDataType_t type, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  const Call call = Begin(comm, count, type, root, stream, "ncclGather");
  if (call.result != ncclSuccess) return call.result;
  const bool mine = root == call.communicator->rank;
  if (Exchanges(call, call.bytes)) return GatherFromPeers(to, from, call, call.bytes, 0, mine);
  if (mine) SpreadOver(to, from, call);
  return ncclSuccess;
}

ncclResult_t ncclScatter(const void* from, void* to, size_t count, ncclDataType_t type, int root,
                         ncclComm_t comm, cudaStream_t stream) {
  const Call call = Begin(comm, count, type, root, stream, "ncclScatter");
  if (call.result != ncclSuccess) return call.result;
  if (Exchanges(call, Whole(call))) {
    const bool mine = root == call.communicator->rank;
    const Bytes handed(from, mine ? Whole(call) : 0);
    return call.communicator->peers->Exchange(handed.part(), [&](int peer, const Peers::Part& part) {
      if (peer != root || part.bytes != Whole(call)) return;
      Keep(to, part.data + call.bytes * static_cast<uint64_t>(call.communicator->rank), call.bytes,
           part.known);
    });
  }
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
    return Submit({Transfer::Kind::kBroadcast, call.communicator, root, from, to, call.bytes});
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
    return Submit({Transfer::Kind::kSend, call.communicator, peer, from, nullptr, call.bytes});
  }
  return call.result;
}

ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  const Call call = Begin(comm, count, type, peer, stream, "ncclRecv");
  if (call.result == ncclSuccess) {
    return Submit({Transfer::Kind::kReceive, call.communicator, peer, nullptr, to, call.bytes});
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
