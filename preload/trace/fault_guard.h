#pragma once
// Stores into a mapped file raise SIGBUS when the page has gone: the file was truncated, the disk failed, a
// copy-on-write file system ran full after all. This guard turns such a fault inside a guarded mapping into a
// private page of zeros and a flag; every other SIGBUS goes where it would have gone without us.
//
// Measured against the alternatives: asking the file's size before each packet costs a system call (about 100
// ns) and is still a race; process_vm_writev on ourselves costs about 300 ns. The handler costs nothing until
// needed.

#include <cstddef>

namespace vramtrace::trace {

// Installs the handler, once; keeps the one before for faults that are not ours. Called when a file opens,
// never from a constructor.
void InstallFaultGuard() noexcept;

// Up to 4096 mappings at a time; more are not guarded.
void GuardMapping(void* begin, size_t size) noexcept;
void UnguardMapping(void* begin) noexcept;

// A guarded page has gone since the start. One relaxed load.
[[nodiscard]] bool MappingLost() noexcept;

}  // namespace vramtrace::trace
