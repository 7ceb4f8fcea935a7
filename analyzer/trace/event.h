#pragma once
// One packet, decoded. Ids are those of the trace's tables; addresses are absolute; bytes are bytes.

#include <cstdint>
#include <string_view>

#include "analyzer/trace/ids.h"

namespace vramtrace::trace {

// The number of the packet's field in vramtrace.proto, Packet.body.
enum class PacketKind : uint8_t {
  kNone = 0,
  kBlockAllocate = 3,
  kBlockFree = 4,
  kDriverAllocate = 5,
  kDriverFree = 6,
  kMemoryQuery = 7,
  kString = 8,
  kCode = 9,
  kFrame = 10,
  kStack = 11,
  kLabel = 12,
  kModule = 13,
  kStep = 14,
  kPhaseMark = 15,
  kOutOfMemory = 16,
  kInputTensor = 17,
  kBinary = 18,
  kProcess = 19,
  kDevice = 20,
  kContext = 21,
  kFeature = 22,
  kLoss = 23,
  kTrailer = 24,
  kHostAllocate = 25,
  kHostFree = 26,
  kMemoryMap = 27,
  kMemoryUnmap = 28,
  kThread = 29,
  kDropped = 30,
  kStepSummary = 31,
};

// Packets without a place in the order of events.
[[nodiscard]] constexpr bool IsTable(PacketKind kind) {
  return (kind >= PacketKind::kString && kind <= PacketKind::kStack) || kind == PacketKind::kBinary;
}

// Values of MemoryKind in vramtrace.proto.
enum class MemoryKind : uint8_t {
  kDevice = 0,
  kManaged = 1,
  kPool = 2,
  kPhysical = 3,
  kImported = 4,
  kArray = 5,
  kGraph = 6,
};

// Values of MemoryQuery.Reason in vramtrace.proto.
enum class QueryReason : uint8_t {
  kProgram = 0,
  kContext = 1,
  kDriverAllocate = 2,
  kOutOfMemory = 3,
  kStep = 4,
  kExit = 5,
  kDriverFree = 6,
};

// cudaErrorMemoryAllocation and CUDA_ERROR_OUT_OF_MEMORY share this value.
inline constexpr uint32_t kResultOutOfMemory = 2;

// Autograd in vramtrace.proto. `operator_name` kNone means forward.
struct AutogradPosition {
  uint64_t sequence_number = 0;
  StringId operator_name = StringId::kNone;
  uint64_t node_thread = 0;
};

// A flat record: which fields are set depends on `kind` and is written in vramtrace.proto. Packets that are
// rare (Label, Module, Step, ...) are left in `body`, for libprotobuf.
struct Event {
  PacketKind kind = PacketKind::kNone;
  uint64_t sequence = 0;
  bool has_sequence = false;  // the packet has a number of its own; else it stands where its chunk stands
  uint64_t time_ns = 0;
  ThreadId thread = ThreadId::kNone;
  DeviceIndex device{};

  uint64_t address = 0;  // absolute; a handle for MemoryKind::kPhysical
  uint64_t bytes = 0;
  uint64_t requested = 0;
  StackId stack = StackId::kNone;
  AutogradPosition autograd;
  uint64_t allocated_total = 0;
  uint64_t reserved_total = 0;
  bool has_totals = false;  // one of the two above was written

  MemoryKind memory_kind = MemoryKind::kDevice;
  QueryReason reason = QueryReason::kProgram;
  StringId function = StringId::kNone;
  StringId caller = StringId::kNone;
  uint32_t result = 0;
  uint64_t handle = 0;  // MemoryMap
  uint64_t free_bytes = 0;
  uint64_t total_bytes = 0;
  uint64_t dropped = 0;  // Dropped: events that were left out on purpose

  // The message inside the packet, for kinds that are not decoded here. Valid until the stream advances.
  std::string_view body;
  // The chunk's base address, which `address_delta` fields in `body` are relative to.
  uint64_t base_address = 0;
};

}  // namespace vramtrace::trace
