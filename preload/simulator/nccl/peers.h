#pragma once
// Peers that are real processes of this machine (torchrun): small payloads go through shared memory, so that
// counts, flags, pickled objects and averaged losses are true. Larger ones are not moved; then every rank
// takes its peers to be alike, as with one process.
//
// Every wait ends: when a peer has died, when the communicator is aborted, or after the time that
// VRAMTRACE_SIM_NCCL_TIMEOUT gives in seconds (600).

#include <nccl.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace vramtrace::simulator::nccl {

inline constexpr int kMostPeers = 16;
inline constexpr uint64_t kSlotBytes = 1u << 20;      // of a rank in a collective operation
inline constexpr uint64_t kMessageBytes = 64u << 10;  // of a send

struct Segment;

class Peers {
 public:
  // The other ranks of a communicator with this unique name; nullptr when they are not processes of this
  // machine (PeersAreProcesses) or do not come in time.
  [[nodiscard]] static std::unique_ptr<Peers> Join(const std::string& name, int ranks, int rank);
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  // What one rank hands in, and whether its values are known.
  struct Part {
    const unsigned char* data = nullptr;
    uint64_t bytes = 0;
    bool known = true;
  };
  // All ranks call it in the same order. `mine` is handed in (at most kSlotBytes); then visit(rank, part)
  // runs for every rank in order.
  [[nodiscard]] ncclResult_t Exchange(const Part& mine, const std::function<void(int, const Part&)>& visit);

  // A message longer than kMessageBytes arrives without its bytes.
  [[nodiscard]] ncclResult_t Send(int peer, const Part& message);
  [[nodiscard]] ncclResult_t Receive(int peer, const std::function<void(const Part&)>& take);

  void Abort();
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] int next_split() { return splits_++; }

 private:
  Peers(std::string name, Segment* segment, int ranks, int rank);
  [[nodiscard]] ncclResult_t Barrier();
  [[nodiscard]] ncclResult_t WaitFor(const std::function<bool()>& ready) const;

  std::string name_;
  Segment* segment_;
  int ranks_;
  int rank_;
  int splits_ = 0;
  uint64_t barriers_ = 0;
};

// Whether a communicator's ranks are processes of this machine: VRAMTRACE_SIM_PEERS is `processes` or
// `alike`; without it, when torchrun says that so many run here (LOCAL_WORLD_SIZE).
[[nodiscard]] bool PeersAreProcesses(int ranks);

}  // namespace vramtrace::simulator::nccl
