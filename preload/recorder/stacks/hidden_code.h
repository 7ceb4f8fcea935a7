#pragma once
// Code objects whose frames never appear in a recorded stack: those of preload/python. Looking one up costs
// one load where the answer is no.

namespace vramtrace::stacks {

// The caller keeps `code` alive for the rest of the process. Called with the GIL held.
void HideCode(const void* code) noexcept;

[[nodiscard]] bool IsHiddenCode(const void* code) noexcept;

}  // namespace vramtrace::stacks
