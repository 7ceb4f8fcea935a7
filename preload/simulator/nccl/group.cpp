#include "preload/simulator/nccl/group.h"

#include <algorithm>
#include <vector>

#include "preload/simulator/core/contents.h"

namespace vramtrace::simulator::nccl {
namespace {

thread_local int t_depth = 0;
thread_local std::vector<Transfer> t_transfers;

void CopyBytes(void* to, const void* from, uint64_t bytes) {
  // A refused copy (an address that is not the device's) changes values only, and those are the program's
  // own mistake; memory is not affected.
  if (to != from && to != nullptr && from != nullptr && bytes != 0) (void)Copy(to, from, bytes);
}

// A peer that looks like this rank sends to this rank what this rank sends to itself; without that, what it
// sends to the peer; without that, anything it sends of the same size (a pipeline stage sends on, and
// receives the same from the stage before).
const Transfer* MatchingSend(const std::vector<Transfer>& transfers, const Transfer& receive) {
  const Transfer* to_peer = nullptr;
  const Transfer* any = nullptr;
  for (const Transfer& send : transfers) {
    if (send.kind != Transfer::Kind::kSend || send.communicator != receive.communicator ||
        send.bytes != receive.bytes) {
      continue;
    }
    if (send.peer == receive.communicator->rank) return &send;
    if (send.peer == receive.peer && to_peer == nullptr) to_peer = &send;
    if (any == nullptr) any = &send;
  }
  return to_peer != nullptr ? to_peer : any;
}

void FinishReceive(const std::vector<Transfer>& transfers, const Transfer& receive) {
  if (const Transfer* send = MatchingSend(transfers, receive)) {
    CopyBytes(receive.to, send->from, receive.bytes);
  } else {
    Clear(receive.to, receive.bytes);
  }
}

// PyTorch gathers a list of tensors by one broadcast from each rank: each peer's part looks like this rank's.
void FinishBroadcast(const std::vector<Transfer>& transfers, const Transfer& broadcast) {
  if (broadcast.peer == broadcast.communicator->rank) {
    CopyBytes(broadcast.to, broadcast.from, broadcast.bytes);
    return;
  }
  for (const Transfer& own : transfers) {
    if (own.kind == Transfer::Kind::kBroadcast && own.communicator == broadcast.communicator &&
        own.peer == own.communicator->rank) {
      CopyBytes(broadcast.to, own.from, std::min(own.bytes, broadcast.bytes));
      return;
    }
  }
  // A lone broadcast from a peer: it holds what this rank holds.
  CopyBytes(broadcast.to, broadcast.from, broadcast.bytes);
}

}  // namespace

void BeginGroup() { ++t_depth; }

bool EndGroup() {
  if (t_depth == 0) return false;
  if (--t_depth > 0) return true;
  const std::vector<Transfer> transfers = std::move(t_transfers);
  t_transfers.clear();
  for (const Transfer& transfer : transfers) {
    if (transfer.kind == Transfer::Kind::kReceive) FinishReceive(transfers, transfer);
    if (transfer.kind == Transfer::Kind::kBroadcast) FinishBroadcast(transfers, transfer);
  }
  return true;
}

void Submit(const Transfer& transfer) {
  BeginGroup();
  t_transfers.push_back(transfer);
  (void)EndGroup();
}

}  // namespace vramtrace::simulator::nccl
