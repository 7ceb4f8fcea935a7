#pragma once
// Point-to-point and grouped operations of the calling thread. What a peer would send is found among what
// this rank sends itself, so it is known only when the group ends.

#include <nccl.h>

#include "preload/simulator/nccl/communicator.h"

namespace vramtrace::simulator::nccl {

void BeginGroup();
// ncclInvalidUsage when no group is open.
[[nodiscard]] ncclResult_t EndGroup();

struct Transfer {
  enum class Kind { kSend, kReceive, kBroadcast };
  Kind kind = Kind::kSend;
  const Communicator* communicator = nullptr;
  int peer = 0;  // of a broadcast: the root
  const void* from = nullptr;
  void* to = nullptr;
  uint64_t bytes = 0;
};

// Outside a group the transfer is a group of its own.
[[nodiscard]] ncclResult_t Submit(const Transfer& transfer);

}  // namespace vramtrace::simulator::nccl
