#pragma once
// Programs that ask for driver functions by name (cuGetProcAddress, cudaGetDriverEntryPoint*, dlsym) get the
// hooked one instead. Decided by the address that the real lookup answered, never by the name: the driver
// answers with the address of its own exported function (interception facts 2.3), and a name alone would also
// match a library that has a function of the same name.

namespace vramtrace::hooks {

// Our definition if `address` is the real driver function of a row, else `address`. Null stays null.
[[nodiscard]] void* HookedAddress(void* address) noexcept;

// The same, unless `caller` lies in the driver library: what the driver looks up in itself is its own.
[[nodiscard]] void* HookedAddressFor(void* address, const void* caller) noexcept;

}  // namespace vramtrace::hooks
