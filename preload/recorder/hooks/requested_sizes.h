#pragma once
// What the program asked the caching allocator for, beside the block it got. The report functions carry block
// sizes only; the request passes through c10::Allocator::allocate(size_t) of the exported allocator object.
// That is slot 2 of its vtable (after the two destructors, in every version from 2.0 on), wrapped in a copy
// of the vtable. raw_alloc and raw_alloc_with_stream are not wrapped: their blocks have no requested size.

#include <cstdint>

namespace vramtrace::hooks {

// Called by preload/python after `import torch`, and not from a hook.
void WrapAllocator() noexcept;

// The size asked for by the allocation that this thread's report is about, 0 when not known. Switches the row
// off when the number cannot be one: a block is never smaller than its request.
[[nodiscard]] uint64_t TakeRequestedSize(uint64_t block_bytes) noexcept;

}  // namespace vramtrace::hooks
