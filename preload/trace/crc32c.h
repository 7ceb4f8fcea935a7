#pragma once
// CRC-32C (Castagnoli, reflected polynomial 0x82F63B78; RFC 3720, appendix B.4): the checksum of a sealed
// chunk.

#include <cstddef>
#include <cstdint>

namespace vramtrace::trace {

// Continues `crc` (0 at the start) over `size` bytes. Uses the processor's instruction where it has one.
[[nodiscard]] uint32_t Crc32c(uint32_t crc, const void* data, size_t size) noexcept;

// The same without the processor's instruction; for the test that both agree.
[[nodiscard]] uint32_t Crc32cPortable(uint32_t crc, const void* data, size_t size) noexcept;

}  // namespace vramtrace::trace
