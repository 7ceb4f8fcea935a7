#pragma once
// What the recorder gives to preload/python: native functions for labels and steps, the sources, and the
// start of the Python frame walker.

namespace vramtrace::hooks {

// From the library's constructor. Does nothing in a process without Python.
void StartPython() noexcept;

}  // namespace vramtrace::hooks
