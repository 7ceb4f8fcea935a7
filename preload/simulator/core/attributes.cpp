// Device attributes by number. Both cudaDeviceGetAttribute and cuDeviceGetAttribute are served from here: the
// enumerations share their numbers.
#include <cuda.h>

#include "preload/simulator/core/device.h"
#include "preload/simulator/core/log.h"

namespace vramtrace::simulator {
namespace {

// What depends on the card; -1 for an attribute that is the same on all of them.
int CardAttribute(const Device& device, int attribute) {
  const catalogue::Limits& limits = *device.limits;
  const catalogue::Gpu& gpu = *device.gpu;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return limits.threads_per_block;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      return limits.shared_per_block;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
      return limits.registers_per_block;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      return gpu.clock_mhz * 1000;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return device.multiprocessors;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      return gpu.memory_clock_mhz * 1000;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
      return gpu.bus_width_bits;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      return static_cast<int>(gpu.l2_bytes);
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      return limits.threads_per_multiprocessor;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return gpu.compute_major;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return gpu.compute_minor;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      return limits.shared_per_multiprocessor;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
      return limits.registers_per_multiprocessor;
    case CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO:
      return limits.single_to_double_ratio;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      return limits.shared_per_block_opt_in;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
      return limits.blocks_per_multiprocessor;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
      return limits.shared_reserved_per_block;
    // Set-aside L2 and its window exist from Ampere on; three quarters of L2 is what A100 reports.
    case CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE:
      return gpu.compute_major >= 8 ? static_cast<int>(gpu.l2_bytes / 4 * 3) : 0;
    case CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE:
      return gpu.compute_major >= 8 ? 128 << 20 : 0;
    case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
      return gpu.compute_major >= 9 ? 1 : 0;
    case CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED:
      return gpu.compute_major >= 9 ? 1 : 0;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
      return device.uuid[15] + 1;
    default:
      return -1;
  }
}

int CommonAttribute(int attribute) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
      return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
      return 64;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
      return 2147483647;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
      return 65535;
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
      return 65536;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      return 32;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
    case CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT:
      return 512;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT:
      return 32;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
      return 2;
    case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
    case CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES:
    case CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS:
      return 1;
    default:
      return 0;  // not offered: multicast, GPUDirect RDMA, ECC, MPS, sparse arrays, NUMA, ...
  }
}

}  // namespace

Status DeviceAttribute(int device, int attribute, int* value) {
  if (Forked()) return Status::kForked;
  const Device* facts = DeviceAt(device);
  if (facts == nullptr) return Status::kInvalidDevice;
  if (attribute <= 0 || attribute >= CU_DEVICE_ATTRIBUTE_MAX) return Status::kInvalidValue;
  int card = CardAttribute(*facts, attribute);
  *value = card >= 0 ? card : CommonAttribute(attribute);
  return Status::kOk;
}

}  // namespace vramtrace::simulator
