#pragma once
// A communicator of one process. Its peers are not there: they are taken to look like this rank, to hold what
// it holds and to send what it sends. That is right for the memory of data-parallel training, whose ranks are
// alike, and for its values as far as they agree between ranks.

#include <nccl.h>

#include <cstdint>

namespace vramtrace::simulator::nccl {

inline constexpr char kLibrary[] = "libnccl.so.2";

struct Communicator {
  static constexpr uint64_t kMark = 0x6e63636c636f6d6d;
  uint64_t mark = kMark;
  int ranks = 1;
  int rank = 0;
  int device = 0;
  uint64_t charged_bytes = 0;
  // False after ncclCommSplit: how many peers chose the same colour is not known here. Then only this rank's
  // own part of a gathered buffer is written, so that nothing lands behind it.
  bool ranks_known = true;
  bool revoked = false;
};

[[nodiscard]] Communicator* From(ncclComm_t comm);

// What a communicator costs on a real card, outside the program's own allocations: measured 342 MiB with 2
// ranks and 392 MiB with 4 or more (aiconfigurator, nccl_mem; README.md, What is modelled). Nothing published
// for one rank, which exchanges nothing: 0.
[[nodiscard]] constexpr uint64_t CommunicatorBytes(int ranks) {
  return ranks < 2 ? 0 : ranks == 2 ? 358'612'992 : 411'041'792;
}

ncclResult_t CreateCommunicator(int ranks, int rank, int device, bool ranks_known, ncclComm_t* comm);
void DestroyCommunicator(Communicator* communicator);

// Bytes of one element, 0 for an unknown type.
[[nodiscard]] size_t ElementBytes(ncclDataType_t type);

}  // namespace vramtrace::simulator::nccl
