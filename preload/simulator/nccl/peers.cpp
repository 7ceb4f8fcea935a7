#include "preload/simulator/nccl/peers.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>

#include "preload/simulator/core/log.h"

namespace vramtrace::simulator::nccl {

// In shared memory; untouched parts cost nothing. Zero is the initial state of everything.
struct Slot {
  std::atomic<uint64_t> bytes;
  std::atomic<uint32_t> known;
  unsigned char data[kSlotBytes];
};
struct Box {  // one message from one rank to another
  std::atomic<uint64_t> sent;
  std::atomic<uint64_t> taken;
  uint64_t bytes;
  uint32_t known;
  unsigned char data[kMessageBytes];
};
struct Segment {
  std::atomic<int> processes[kMostPeers];
  std::atomic<uint64_t> arrivals;
  std::atomic<uint32_t> aborted;
  Slot slots[kMostPeers];
  Box boxes[kMostPeers][kMostPeers];
};

namespace {

double Now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double Timeout() {
  const char* text = std::getenv("VRAMTRACE_SIM_NCCL_TIMEOUT");
  const double seconds = text != nullptr ? std::atof(text) : 0;
  return seconds > 0 ? seconds : 600;
}

bool HasDied(int process) { return process != 0 && kill(process, 0) != 0 && errno == ESRCH; }

int NumberIn(const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::atoi(text) : 0;
}

}  // namespace

bool PeersAreProcesses(int ranks) {
  if (ranks < 2 || ranks > kMostPeers) return false;
  if (const char* text = std::getenv("VRAMTRACE_SIM_PEERS")) return std::strcmp(text, "processes") == 0;
  return ranks <= NumberIn("LOCAL_WORLD_SIZE");
}

Peers::Peers(std::string name, Segment* segment, int ranks, int rank)
    : name_(std::move(name)), segment_(segment), ranks_(ranks), rank_(rank) {}

Peers::~Peers() { munmap(segment_, sizeof(Segment)); }

std::unique_ptr<Peers> Peers::Join(const std::string& name, int ranks, int rank) {
  if (!PeersAreProcesses(ranks)) return nullptr;
  const std::string file = "/dev/shm/" + name;  // shm_open is not in every libc
  const int handle = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  void* memory = MAP_FAILED;
  if (handle >= 0 && ftruncate(handle, sizeof(Segment)) == 0) {
    memory = mmap(nullptr, sizeof(Segment), PROT_READ | PROT_WRITE, MAP_SHARED, handle, 0);
  }
  if (handle >= 0) close(handle);
  if (memory == MAP_FAILED) {
    Warn("no shared memory for a communicator (%s); its ranks are taken to be alike", strerror(errno));
    return nullptr;
  }
  auto* segment = static_cast<Segment*>(memory);
  std::unique_ptr<Peers> peers(new (std::nothrow) Peers(name, segment, ranks, rank));
  segment->processes[rank].store(getpid());
  if (peers == nullptr || peers->Barrier() != ncclSuccess) {
    unlink(file.c_str());
    return nullptr;
  }
  unlink(file.c_str());  // all have it mapped; nothing is left behind
  return peers;
}

ncclResult_t Peers::WaitFor(const std::function<bool()>& ready) const {
  constexpr int kSpins = 200;
  constexpr unsigned kPauseMicroseconds = 100;
  constexpr int kPausesBetweenLooks = 500;
  for (int spin = 0; spin < kSpins; ++spin) {
    if (ready()) return ncclSuccess;
  }
  const double deadline = Now() + Timeout();
  for (int pause = 1;; ++pause) {
    if (ready()) return ncclSuccess;
    if (segment_->aborted.load() != 0) return ncclRemoteError;
    if (pause % kPausesBetweenLooks == 0) {
      for (int peer = 0; peer < ranks_; ++peer) {
        if (!HasDied(segment_->processes[peer].load()) || ready()) continue;
        Warn("rank %d of a communicator of %d has ended; rank %d waits for it no longer", peer, ranks_,
             rank_);
        return ncclRemoteError;
      }
      if (Now() > deadline) {
        Warn("rank %d waited %.0f s for its peers (VRAMTRACE_SIM_NCCL_TIMEOUT)", rank_, Timeout());
        return ncclRemoteError;
      }
    }
    usleep(kPauseMicroseconds);
  }
}

ncclResult_t Peers::Barrier() {
  const uint64_t wanted = ++barriers_ * static_cast<uint64_t>(ranks_);
  segment_->arrivals.fetch_add(1);
  return WaitFor([&] { return segment_->arrivals.load() >= wanted; });
}

ncclResult_t Peers::Exchange(const Part& mine, const std::function<void(int, const Part&)>& visit) {
  Slot& slot = segment_->slots[rank_];
  if (mine.bytes != 0) std::memcpy(slot.data, mine.data, mine.bytes);
  slot.bytes.store(mine.bytes);
  slot.known.store(mine.known ? 1 : 0);
  if (ncclResult_t result = Barrier(); result != ncclSuccess) return result;
  for (int peer = 0; peer < ranks_; ++peer) {
    const Slot& other = segment_->slots[peer];
    visit(peer, {other.data, other.bytes.load(), other.known.load() != 0});
  }
  return Barrier();  // nobody writes his slot again before all have read it
}

ncclResult_t Peers::Send(int peer, const Part& message) {
  Box& box = segment_->boxes[rank_][peer];
  ncclResult_t result = WaitFor([&] { return box.sent.load() == box.taken.load(); });
  if (result != ncclSuccess) return result;
  box.bytes = message.bytes <= kMessageBytes ? message.bytes : 0;
  box.known = message.known ? 1 : 0;
  if (box.bytes != 0) std::memcpy(box.data, message.data, box.bytes);
  box.sent.fetch_add(1);
  return ncclSuccess;
}

ncclResult_t Peers::Receive(int peer, const std::function<void(const Part&)>& take) {
  Box& box = segment_->boxes[peer][rank_];
  ncclResult_t result = WaitFor([&] { return box.sent.load() != box.taken.load(); });
  if (result != ncclSuccess) return result;
  take({box.data, box.bytes, box.known != 0});
  box.taken.fetch_add(1);
  return ncclSuccess;
}

void Peers::Abort() { segment_->aborted.store(1); }

}  // namespace vramtrace::simulator::nccl
