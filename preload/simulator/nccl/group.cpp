#include "preload/simulator/nccl/group.h"

#include <algorithm>
#include <vector>

#include "preload/simulator/core/contents.h"
#include "preload/simulator/core/values.h"

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

Peers::Part PartOf(const Transfer& transfer, uint64_t most, std::vector<unsigned char>* values) {
  if (transfer.bytes > most) return {nullptr, transfer.bytes, false};
  values->resize(transfer.bytes);
  if (transfer.bytes != 0 && Peek(values->data(), transfer.from, transfer.bytes) != Status::kOk) return {};
  const Knowledge knowledge = KnowledgeOf(reinterpret_cast<uint64_t>(transfer.from), transfer.bytes);
  return {values->data(), transfer.bytes, knowledge == Knowledge::kKnown};
}

void Take(const Transfer& transfer, const Peers::Part& part) {
  if (part.bytes != transfer.bytes || transfer.bytes == 0) {
    Clear(transfer.to, transfer.bytes);
    return;
  }
  if (Store(transfer.to, part.data, part.bytes) == Status::kOk && !part.known) {
    MarkWritten(reinterpret_cast<uint64_t>(transfer.to), part.bytes, false);
  }
}

// With real peers: everything is sent before anything is waited for.
ncclResult_t SendToPeer(const Transfer& send) {
  Peers* peers = send.communicator->peers.get();
  std::vector<unsigned char> values;
  return peers->Send(send.peer, PartOf(send, kMessageBytes, &values));
}

ncclResult_t ReceiveFromPeer(const Transfer& receive) {
  return receive.communicator->peers->Receive(receive.peer,
                                              [&](const Peers::Part& part) { Take(receive, part); });
}

ncclResult_t BroadcastToPeers(const Transfer& broadcast) {
  if (broadcast.bytes > kSlotBytes) return ncclSuccess;  // the root keeps its own, the others what they have
  std::vector<unsigned char> values;
  Peers::Part mine;
  if (broadcast.peer == broadcast.communicator->rank) mine = PartOf(broadcast, kSlotBytes, &values);
  return broadcast.communicator->peers->Exchange(mine, [&](int peer, const Peers::Part& part) {
    if (peer == broadcast.peer) Take(broadcast, part);
  });
}

ncclResult_t Finish(const std::vector<Transfer>& transfers, const Transfer& transfer) {
  const bool real = transfer.communicator->peers != nullptr;
  const bool to_self = transfer.peer == transfer.communicator->rank;
  switch (transfer.kind) {
    case Transfer::Kind::kSend:
      return ncclSuccess;  // sent before
    case Transfer::Kind::kReceive:
      if (real && !to_self) return ReceiveFromPeer(transfer);
      FinishReceive(transfers, transfer);
      return ncclSuccess;
    case Transfer::Kind::kBroadcast:
      if (real && transfer.bytes <= kSlotBytes) return BroadcastToPeers(transfer);
      FinishBroadcast(transfers, transfer);
      return ncclSuccess;
  }
  return ncclInternalError;
}

}  // namespace

void BeginGroup() { ++t_depth; }

ncclResult_t EndGroup() {
  if (t_depth == 0) return ncclInvalidUsage;
  if (--t_depth > 0) return ncclSuccess;
  const std::vector<Transfer> transfers = std::move(t_transfers);
  t_transfers.clear();
  ncclResult_t result = ncclSuccess;
  for (const Transfer& transfer : transfers) {
    const Communicator& communicator = *transfer.communicator;
    if (transfer.kind != Transfer::Kind::kSend || communicator.peers == nullptr ||
        transfer.peer == communicator.rank) {
      continue;
    }
    if (result == ncclSuccess) result = SendToPeer(transfer);
  }
  for (const Transfer& transfer : transfers) {
    if (result == ncclSuccess) result = Finish(transfers, transfer);
  }
  return result;
}

ncclResult_t Submit(const Transfer& transfer) {
  BeginGroup();
  t_transfers.push_back(transfer);
  return EndGroup();
}

}  // namespace vramtrace::simulator::nccl
