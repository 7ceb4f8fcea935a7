#pragma once
// The devices' address space: one range, reserved without access and without backing. It costs nothing until
// bytes are stored; then the 2 MiB around them become readable and writable. A program that follows a device
// pointer on the host faults, as on a real machine.

#include <atomic>
#include <cstdint>
#include <map>
#include <vector>

namespace vramtrace::simulator {

class AddressSpace {
 public:
  AddressSpace();

  [[nodiscard]] bool Contains(uint64_t address) const { return address - begin_ < bytes_; }
  // 0 when there is no room. `hint` is tried first when it is not 0.
  [[nodiscard]] uint64_t Take(uint64_t bytes, uint64_t alignment, uint64_t hint = 0);
  void Give(uint64_t address, uint64_t bytes);
  // Makes a range accessible. False when the system refuses.
  [[nodiscard]] bool Commit(uint64_t address, uint64_t bytes);

 private:
  uint64_t TakeFrom(std::map<uint64_t, uint64_t>::iterator hole, uint64_t address, uint64_t bytes);

  uint64_t begin_ = 0;
  uint64_t bytes_ = 0;
  std::map<uint64_t, uint64_t> holes_;  // address -> bytes
  std::vector<bool> committed_;         // a 2 MiB piece each
};

}  // namespace vramtrace::simulator
