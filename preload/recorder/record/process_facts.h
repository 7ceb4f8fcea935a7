#pragma once
// What the recorder knows of the process by itself: identity, command line, the part of the environment that
// a trace may hold, ranks, the start.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "preload/trace/packets.h"

namespace vramtrace::record {

// Texts live in the object: about 100 KiB, so it is never put on a stack.
class ProcessSnapshot {
 public:
  constexpr ProcessSnapshot() = default;

  // Reads /proc/self and the environment. Cheap enough for once; no allocation.
  void Take() noexcept;

  [[nodiscard]] const trace::ProcessPacket& Packet() const noexcept { return packet_; }
  // The script of a Python program without its ending, otherwise the executable's name; characters that are
  // awkward in a file name become '_'.
  [[nodiscard]] std::string_view Program() const noexcept { return program_; }

 private:
  // An encoded Process packet must fit the tables' scratch of 64 KiB with room to spare.
  static constexpr size_t kTextBytes = 40 * 1024;
  static constexpr size_t kMaxValues = 512;

  void ReadArguments() noexcept;
  void ReadEnvironment() noexcept;
  void ReadStart() noexcept;
  void FindProgram() noexcept;
  [[nodiscard]] std::string_view Keep(std::string_view text) noexcept;

  trace::ProcessPacket packet_;
  std::string_view program_;
  std::string_view arguments_[kMaxValues];
  std::string_view environment_[kMaxValues];
  char raw_arguments_[32 * 1024] = {};
  size_t raw_arguments_bytes_ = 0;
  char text_[kTextBytes] = {};
  size_t text_used_ = 0;
};

// The rank variables of the launchers, first that is set: torchrun, Open MPI, Slurm, PMI. 0 when none is.
[[nodiscard]] uint32_t RankFromEnvironment() noexcept;

}  // namespace vramtrace::record
