#pragma once
// Buffers of reductions that several blocks of threads share, such as the sum of a bias's gradient over all
// tokens. Their size follows the batch until the card is full of blocks, then stays.
//
// Source: setReduceConfig and ReduceConfig::global_memory_size of PyTorch's aten/src/ATen/native/cuda/
// Reduce.cuh. An output is shared by min(threads' work / 16, blocks that fill the card) blocks, but by no
// fewer than threads' work / 256. Seen on the simulated H200 (132 multiprocessors): 138,412,032 B at every
// size beyond, with 768, 3072 and 4096 outputs.

#include "analyzer/forecast/stream.h"

namespace vramtrace::forecast {

// Work per thread at which a buffer grows on, over that at which it is full: 256 / 16.
inline constexpr int kReductionSlack = 16;

// True when the events from `place` on are those of one: buffer, semaphores, and the ends of both.
[[nodiscard]] bool IsReduction(const Stream& stream, size_t place);

// Limits the laws of such buffers. They are known by what follows them: their semaphores, 4 B for each block
// of outputs, and both are freed at once. Nothing happens where the catalogue does not have the device.
void LimitReductions(Stream* stream);

}  // namespace vramtrace::forecast
