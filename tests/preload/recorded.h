#pragma once
// A trace as the tests look at it: packets in the order of their sequence numbers, ids replaced by texts.

#include <cstdint>
#include <string>
#include <vector>

#include "preload/trace/vramtrace.pb.h"

namespace vramtrace::tests {

struct RecordedPacket {
  uint64_t sequence = 0;  // 0 for table packets
  uint64_t address = 0;   // of events that have one: absolute
  uint32_t thread = 0;    // the chunk's
  v1::Packet packet;
};

struct RecordedFrame {
  std::string file;
  std::string name;
  uint32_t line = 0;
  uint64_t module_object = 0;
  bool native = false;
};

class Recorded {
 public:
  // Reads a whole file. An unreadable one is empty, with `error` set.
  explicit Recorded(const std::string& path);

  std::string error;
  std::vector<RecordedPacket> packets;

  [[nodiscard]] std::string Text(uint32_t string_id) const;
  [[nodiscard]] std::vector<RecordedFrame> Stack(uint32_t stack_id) const;  // innermost first

 private:
  std::vector<std::string> strings_;
  std::vector<v1::Code> codes_;
  std::vector<v1::Frame> frames_;
  std::vector<v1::Stack> stacks_;
};

}  // namespace vramtrace::tests
