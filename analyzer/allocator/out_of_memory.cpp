#include "analyzer/allocator/out_of_memory.h"

#include <cstdio>

namespace vramtrace::allocator {
namespace {

std::string Scaled(Bytes bytes, Bytes unit, const char* name) {
  char text[64];
  std::snprintf(text, sizeof text, "%.2f %s", static_cast<double>(bytes) / static_cast<double>(unit), name);
  return text;
}

std::string OldMessage(const OutOfMemory& failure, int device) {
  std::string text = "CUDA out of memory. Tried to allocate " + FormatSize(failure.tried) + " (GPU " +
                     std::to_string(device) + "; " + FormatSize(failure.total) + " total capacity; " +
                     FormatSize(failure.allocated) + " already allocated; " + FormatSize(failure.free) +
                     " free; ";
  if (failure.allowed) text += FormatSize(*failure.allowed) + " allowed; ";
  return text + FormatSize(failure.reserved) + " reserved in total by PyTorch)";
}

std::string Processes(const ProcessMemory& memory) {
  std::string text;
  for (const ProcessMemory::Process& process : memory.others) {
    text += "Process " + std::to_string(process.id) + " has " + FormatSize(process.used) + " memory in use. ";
  }
  return text + "Including non-PyTorch memory, this process has " + FormatSize(memory.this_process) +
         " memory in use. ";
}

}  // namespace

std::string FormatSize(Bytes bytes) {
  if (bytes <= 1024) return std::to_string(bytes) + " bytes";
  if (bytes <= kMiB) return Scaled(bytes, 1024, "KiB");
  if (bytes <= 1024 * kMiB) return Scaled(bytes, kMiB, "MiB");
  return Scaled(bytes, 1024 * kMiB, "GiB");
}

std::string Message(const OutOfMemory& failure, MessageStyle style, int device,
                    const std::optional<ProcessMemory>& processes) {
  if (failure.reason == OutOfMemory::Reason::kTooLarge) {
    return "CUDA out of memory. Tried to allocate more than 1EB memory.";
  }
  if (failure.reason == OutOfMemory::Reason::kRejected) {
    return "CUDA out of memory. Allocation was preemptively rejected because it would exceed "
           "per_process_memory_fraction limit. Requested size: " +
           FormatSize(failure.requested);
  }
  if (style == MessageStyle::kCapacityInParentheses) return OldMessage(failure, device);
  const Bytes in_pools = style >= MessageStyle::kPrivatePools ? failure.free_in_private_pools : 0;
  std::string text = "CUDA out of memory. Tried to allocate " + FormatSize(failure.tried) + ". GPU ";
  if (style == MessageStyle::kDeviceAsByte) {
    if (device == 0) return text;
    text += static_cast<char>(device);
  } else {
    text += std::to_string(device);
  }
  text += style == MessageStyle::kMisspelt ? " has a total capacty of " : " has a total capacity of ";
  text += FormatSize(failure.total) + " of which " + FormatSize(failure.free) + " is free. ";
  if (processes) text += Processes(*processes);
  if (style >= MessageStyle::kLimit && failure.allowed) text += FormatSize(*failure.allowed) + " allowed; ";
  text +=
      "Of the allocated memory " + FormatSize(failure.allocated + in_pools) + " is allocated by PyTorch, ";
  if (in_pools > 0)
    text += "with " + FormatSize(in_pools) + " allocated in private pools (e.g., CUDA Graphs), ";
  return text + "and " + FormatSize(failure.reserved - failure.allocated - in_pools) +
         " is reserved by PyTorch but unallocated.";
}

}  // namespace vramtrace::allocator
