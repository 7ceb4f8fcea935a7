#pragma once
// Programs that ask for driver functions by name (cuGetProcAddress, cudaGetDriverEntryPoint*, dlsym) get the
// hooked one instead. Decided by the address that the real lookup answered, never by the name: the driver
// answers with the address of its own exported function (interception facts 2.3), and a name alone would also
// match a library that has a function of the same name.

namespace vramtrace::hooks {

// Our definition if `address` is the real driver function of a row, else `address`. Null stays null.
[[nodiscard]] void* HookedAddress(void* address) noexcept;

}  // namespace vramtrace::hooks
