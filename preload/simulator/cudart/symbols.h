#pragma once
// Variables of device code (__device__, __constant__): an address on each device that asks for one.

#include <cstddef>

#include "preload/simulator/core/status.h"

namespace vramtrace::simulator::runtime {

void RegisterSymbol(const void* host, const char* name, size_t bytes);
Status FindSymbol(const void* host, void** address, size_t* bytes);

}  // namespace vramtrace::simulator::runtime
