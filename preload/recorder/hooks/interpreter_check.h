#pragma once

#include "preload/python/python_api.h"

namespace vramtrace::hooks {

// Compares the frame walker with the interpreter's own account of the current stack and switches Python
// frames on or off. With the GIL held, from a call made by Python code. Only reads.
bool CheckInterpreter(const python::Api& api, bool last);

}  // namespace vramtrace::hooks
