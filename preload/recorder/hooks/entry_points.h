#pragma once
// Programs that ask for driver functions by name (cuGetProcAddress, cudaGetDriverEntryPoint*, dlsym) get the
// hooked one instead. Decided by the address that the real lookup answered, never by the name: the driver
// answers with the address of its own exported function (interception facts 2.3), and a name alone would also
// match a library that has a function of the same name.

#include "preload/recorder/hooks/hook_list.h"

namespace vramtrace::hooks {

// Our definition of a row, and the row of an exported name; -1 where there is none.
[[nodiscard]] void* DefinitionOf(Hook hook) noexcept;
[[nodiscard]] int RowNamed(const char* symbol) noexcept;

// Our definition if `address` is the real driver function of a row, else `address`. Null stays null.
[[nodiscard]] void* HookedAddress(void* address) noexcept;

// The same, unless `caller` lies in the driver library: what the driver looks up in itself is its own.
[[nodiscard]] void* HookedAddressFor(void* address, const void* caller) noexcept;

// The same for a function of the runtime, which is asked for by its own name. Only of a library named
// libcudart, and only while the process holds one of them: with two, our definition could not tell whose
// function was asked for, and the driver's functions below are hooked all the same.
[[nodiscard]] void* HookedRuntimeAddress(const char* name, void* address) noexcept;

}  // namespace vramtrace::hooks
