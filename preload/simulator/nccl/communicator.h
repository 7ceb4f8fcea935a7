#pragma once
// A communicator. Its peers are processes of this machine (peers.h), or they are not there: then they are
// taken to look like this rank, to hold what it holds and to send what it sends. That is right for the memory
// of data-parallel training, whose ranks are alike, and for its values as far as they agree between ranks.

#include <nccl.h>

#include <cstdint>
#include <memory>
#include <string>

#include "preload/simulator/nccl/peers.h"

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
  std::unique_ptr<Peers> peers;  // null when they are alike
};

[[nodiscard]] Communicator* From(ncclComm_t comm);

// What a communicator costs on a real card, outside the program's own allocations: measured 342 MiB with 2
// ranks and 392 MiB with 4 or more (aiconfigurator, nccl_mem; README.md, What is modelled). Nothing published
// for one rank, which exchanges nothing: 0.
[[nodiscard]] constexpr uint64_t CommunicatorBytes(int ranks) {
  return ranks < 2 ? 0 : ranks == 2 ? 358'612'992 : 411'041'792;
}

// `name` is the same for all ranks of one communicator, and no other's; empty when there is none.
ncclResult_t CreateCommunicator(int ranks, int rank, int device, bool ranks_known, const std::string& name,
                                ncclComm_t* comm);
void DestroyCommunicator(Communicator* communicator);

// Bytes of one element, 0 for an unknown type.
[[nodiscard]] size_t ElementBytes(ncclDataType_t type);

}  // namespace vramtrace::simulator::nccl
