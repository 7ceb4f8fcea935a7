#pragma once
// Packets to bytes, with protozero's varints, into the caller's buffer. Nothing here allocates or throws.

#include <cstddef>
#include <cstdint>
#include <span>

#include "preload/trace/packets.h"

namespace vramtrace::trace {

// What every packet carries: differences to the packet before in its chunk (vramtrace.proto, Packet).
struct PacketStamp {
  uint64_t sequence_delta = 0;
  uint64_t time_delta_ns = 0;
};

// Texts are cut to this many bytes, at a character boundary; bytes that are no UTF-8 become U+FFFD (a reader
// of proto3 refuses a packet otherwise).
inline constexpr size_t kMaxTextBytes = 4096;
// Shapes are cut to this many dimensions. PyTorch allows 64.
inline constexpr size_t kMaxDimensions = 64;

// Enough for any packet without text: the longest is InputTensor with 64 dimensions of 10 bytes.
inline constexpr size_t kEventBufferBytes = 1024;
// Enough for any packet but Process.
inline constexpr size_t kTableBufferBytes = 2 * kMaxTextBytes + 256;

// The packet with its length in front, somewhere inside `buffer`; empty when the buffer is too small.
// One overload a message: EncodePacket(stamp, BlockAllocatePacket{...}, buffer).
#define VRAMTRACE_TRACE_PACKETS(X) \
  X(BlockAllocate, 3)              \
  X(BlockFree, 4)                  \
  X(DriverAllocate, 5)             \
  X(DriverFree, 6)                 \
  X(MemoryQuery, 7)                \
  X(String, 8)                     \
  X(Code, 9)                       \
  X(Frame, 10)                     \
  X(Stack, 11)                     \
  X(Label, 12)                     \
  X(Module, 13)                    \
  X(Step, 14)                      \
  X(PhaseMark, 15)                 \
  X(OutOfMemory, 16)               \
  X(InputTensor, 17)               \
  X(Binary, 18)                    \
  X(Process, 19)                   \
  X(Device, 20)                    \
  X(Context, 21)                   \
  X(Feature, 22)                   \
  X(Loss, 23)                      \
  X(Trailer, 24)                   \
  X(HostAllocate, 25)              \
  X(HostFree, 26)                  \
  X(MemoryMap, 27)                 \
  X(MemoryUnmap, 28)               \
  X(Thread, 29)                    \
  X(Dropped, 30)                   \
  X(StepSummary, 31)

#define VRAMTRACE_DECLARE_ENCODER(Message, number)       \
  [[nodiscard]] std::span<const std::byte> EncodePacket( \
      const PacketStamp& stamp, const Message##Packet& body, std::span<std::byte> buffer) noexcept;
VRAMTRACE_TRACE_PACKETS(VRAMTRACE_DECLARE_ENCODER)
#undef VRAMTRACE_DECLARE_ENCODER

// A body that was encoded before, for a chunk with another base address.
struct CopiedBody {
  uint32_t number = 0;  // of the body's field in Packet
  std::span<const std::byte> body{};
  uint32_t address_field = 0;  // its address_delta's number; 0: it has none
  int64_t address_delta = 0;   // in the new chunk
  uint32_t left_out = 0;       // bit n: field n is not copied
};
[[nodiscard]] std::span<const std::byte> EncodeCopy(const PacketStamp& stamp, const CopiedBody& body,
                                                    std::span<std::byte> buffer) noexcept;

}  // namespace vramtrace::trace
