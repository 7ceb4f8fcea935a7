#pragma once
// Makes trace files for tests, packet by packet, with libprotobuf. Every event takes the next sequence number
// and advances the clock by one microsecond.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "preload/trace/vramtrace.pb.h"

namespace vramtrace::testing {

// One Python frame. `module_object` as Frame.module_object.
struct PythonFrame {
  std::string file;
  uint32_t line = 0;
  std::string name;
  uint64_t module_object = 0;
};

// Where the autograd engine stands: without an operator, a forward.
struct Autograd {
  uint64_t sequence_number = 0;
  std::string operator_name = {};  // mangled, as the recorder writes it
  uint64_t node_thread = 0;
};

// Arguments of a block's allocation.
struct BlockArguments {
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint64_t requested = 0;
  uint32_t stack = 0;
  uint32_t device = 0;
  uint32_t thread = 1;
  Autograd autograd = {};
  uint64_t allocated_total = 0;
  uint64_t reserved_total = 0;
};

class TraceBuilder {
 public:
  static constexpr uint64_t kBaseAddress = 0x7f0000000000;

  explicit TraceBuilder(uint64_t chunk_bytes = 256 * 1024);

  // Tables: the id, made at first use --------------------------------------------------------------------
  uint32_t String(std::string_view text);
  // Outermost frame first.
  uint32_t Stack(const std::vector<PythonFrame>& frames);
  void Module(uint64_t object, std::string_view path, std::string_view class_name, uint64_t parent = 0);

  // Events -----------------------------------------------------------------------------------------------
  void Allocate(const BlockArguments& block);
  void Free(const BlockArguments& block);  // `bytes` 0: as allocated
  void OutOfMemory(const BlockArguments& request);
  void DriverAllocate(uint64_t address, uint64_t bytes, std::string_view caller = "libc10_cuda.so",
                      uint32_t result = 0, v1::MemoryKind kind = v1::MEMORY_KIND_DEVICE);
  void DriverFree(uint64_t address, std::string_view caller = "libc10_cuda.so",
                  v1::MemoryKind kind = v1::MEMORY_KIND_DEVICE);
  void Map(uint64_t address, uint64_t bytes, uint64_t handle);
  void Unmap(uint64_t address, uint64_t bytes);
  void Query(uint64_t free_bytes, uint64_t total_bytes, v1::MemoryQuery::Reason reason, uint32_t device = 0);
  void Label(v1::Label::Kind kind, uint64_t address, uint64_t bytes, std::string_view name,
             std::string_view state_key = {}, std::string_view dtype = "float32");
  void Input(std::string_view name, uint64_t address, uint64_t bytes, const std::vector<int64_t>& shape,
             uint64_t step);
  void Step(uint64_t number, bool end, std::string_view optimizer = "AdamW");
  void HostAllocate(uint64_t address, uint64_t bytes);
  void Phase(std::string_view name, bool end);
  // Nothing happens for so long.
  void Wait(uint64_t nanoseconds) { time_ns_ += nanoseconds; }

  // Any packet. `in_tables`: into the table chunk, without a sequence number.
  void Add(v1::Packet packet, bool in_tables);
  void AddProcess(const v1::Process& process);
  void AddDevice(const v1::Device& device);
  void AddFeature(std::string_view name, bool on, std::string_view reason);
  void AddTrailer();

  // Events after this go to another thread's chunk.
  void SetThread(uint32_t thread);
  // The thread's chunk is another thread's from here on, as when it ended. Events after this are that one's.
  void HandChunkOn(uint32_t thread);
  // Ends the chunks that are open, so that the next packet begins new ones.
  void SealChunks();
  [[nodiscard]] uint64_t sequence() const { return sequence_; }

  // The file's bytes: the tables first, then the events. May be asked for at any time.
  [[nodiscard]] std::string Bytes();
  void Write(const std::string& path);

 private:
  struct Chunk {
    bool tables = false;
    uint32_t first_thread = 0;  // the header's
    uint32_t thread = 0;        // whose events come now
    uint64_t base_sequence = 0;
    uint64_t base_time_ns = 0;
    uint64_t last_sequence = 0;
    uint64_t last_time_ns = 0;
    bool sealed = false;
    std::string packets;
  };

  Chunk& OpenChunk(bool tables);
  void SetAutograd(const Autograd& autograd, v1::Autograd* out);
  [[nodiscard]] static int64_t Delta(uint64_t address) {
    return static_cast<int64_t>(address - kBaseAddress);
  }
  [[nodiscard]] std::string HeaderOf(const Chunk& chunk, uint64_t index) const;

  uint64_t chunk_bytes_;
  std::vector<Chunk> chunks_;
  uint64_t sequence_ = 0;
  uint64_t time_ns_ = 1'000'000'000;
  uint32_t thread_ = 1;
  std::map<std::string, uint32_t, std::less<>> strings_;
  std::map<std::tuple<std::string, std::string>, uint32_t> codes_;
  std::map<std::tuple<uint32_t, uint32_t, uint64_t>, uint32_t> frames_;
  std::map<std::tuple<uint32_t, uint32_t>, uint32_t> stacks_;
};

}  // namespace vramtrace::testing
