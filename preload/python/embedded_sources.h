#pragma once
// The Python files of this folder, embedded at build time (embed_sources.cmake).

#include <cstddef>

#include "preload/python/python_host.h"

namespace vramtrace::python {

extern const Source kEmbeddedSources[];
extern const size_t kEmbeddedSourceCount;

}  // namespace vramtrace::python
