#pragma once

#include <cstdint>
#include <limits>

namespace vramtrace::allocator {

using Bytes = std::uint64_t;
using Address = std::uint64_t;

inline constexpr Bytes kMiB = Bytes{1} << 20;
inline constexpr Bytes kUnlimited = std::numeric_limits<Bytes>::max();

// A CUDA stream's handle as an unsigned integer, the order in which the allocator sorts them. 0 is the
// default stream.
enum class StreamId : std::uint64_t { kDefault = 0 };

// A pool of cached memory: the default one, or a private one (CUDA graphs, torch.cuda.MemPool).
enum class PoolId : std::uint32_t { kDefault = 0 };

// A block that was handed out. Ids are not used again, so a stale one is recognised.
enum class BlockId : std::uint64_t { kNone = std::numeric_limits<std::uint64_t>::max() };

}  // namespace vramtrace::allocator
