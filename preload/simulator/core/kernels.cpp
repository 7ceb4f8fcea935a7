#include "preload/simulator/core/kernels.h"

#include <cuda.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "preload/simulator/core/device.h"
#include "preload/simulator/core/faults.h"
#include "preload/simulator/core/graphs.h"
#include "preload/simulator/core/log.h"
#include "preload/simulator/core/report.h"

namespace vramtrace::simulator {
namespace {

// Architectures that PyTorch's wheels carry code for (torch.cuda.get_arch_list() of 2.6 to 2.15, joined).
constexpr int kWheelArchitectures[] = {60, 70, 75, 80, 86, 90, 100, 120};

int RoundUp(int value, int unit) { return (value + unit - 1) / unit * unit; }

// Blocks that the registers of a multiprocessor hold: registers go to warps in units, warps in groups of
// four.
int BlocksByRegisters(const catalogue::Limits& limits, int registers, int warps) {
  int a_warp = RoundUp(registers * 32, limits.register_allocation_unit);
  int warps_that_fit = limits.registers_per_multiprocessor / a_warp;
  warps_that_fit -= warps_that_fit % limits.warp_allocation_granularity;
  return warps_that_fit / warps;
}

// Importing PyTorch registers 24,000 kernels: they are only appended, and indexed when a name is asked for.
struct Kernels {
  std::mutex mutex;
  std::vector<std::pair<const void*, const char*>> registered;
  std::unordered_map<const void*, const char*> names;
  std::unordered_map<const void*, int> dynamic_shared;
  std::deque<std::string> loaded_names;  // outlive the module they came from
};

Kernels& TheKernels() {
  static auto* kernels = new Kernels;
  return *kernels;
}

}  // namespace

void RegisterKernel(const void* handle, const char* name) {
  Kernels& kernels = TheKernels();
  std::lock_guard lock(kernels.mutex);
  kernels.registered.emplace_back(handle, name);
}

void RegisterLoadedKernel(const void* handle, const char* name) {
  Kernels& kernels = TheKernels();
  std::lock_guard lock(kernels.mutex);
  kernels.loaded_names.emplace_back(name);
  kernels.registered.emplace_back(handle, kernels.loaded_names.back().c_str());
}

const char* KernelName(const void* handle) {
  Kernels& kernels = TheKernels();
  std::lock_guard lock(kernels.mutex);
  for (const auto& [key, name] : kernels.registered) kernels.names[key] = name;
  kernels.registered.clear();
  auto found = kernels.names.find(handle);
  return found == kernels.names.end() ? "?" : found->second;
}

KernelFacts FactsOf(const void* handle) {
  KernelFacts facts;
  Kernels& kernels = TheKernels();
  std::lock_guard lock(kernels.mutex);
  auto found = kernels.dynamic_shared.find(handle);
  if (found != kernels.dynamic_shared.end()) facts.max_dynamic_shared_bytes = found->second;
  return facts;
}

Status SetMaxDynamicShared(const void* handle, int device, int bytes) {
  const Device* facts = DeviceAt(device);
  if (facts == nullptr) return Status::kInvalidDevice;
  if (bytes < 0 || bytes > facts->limits->shared_per_block_opt_in) return Status::kInvalidValue;
  Kernels& kernels = TheKernels();
  std::lock_guard lock(kernels.mutex);
  kernels.dynamic_shared[handle] = bytes;
  return Status::kOk;
}

Status Launch(const void* kernel, void* stream_handle) {
  Stream* stream = FindStream(stream_handle);
  if (stream == nullptr) return Status::kInvalidHandle;
  if (Status status = EnsureContext(stream->device); status != Status::kOk) return status;
  if (ShouldFail(CallKind::kLaunch)) return Status::kInjected;
  report::Add(report::Count::kLaunches);
  CaptureWork(stream, CU_GRAPH_NODE_TYPE_KERNEL);
  if (Verbose()) Log("kernel %s", KernelName(kernel));
  return Status::kOk;
}

int CodeVersion(int device) {
  const Device* facts = DeviceAt(device);
  if (facts == nullptr) return 0;
  int wanted = facts->gpu->compute_major * 10 + facts->gpu->compute_minor;
  int best = wanted;
  for (int version : kWheelArchitectures) {
    if (version / 10 == wanted / 10 && version <= wanted) best = version;
  }
  return best;
}

Status Occupancy(int device, const KernelFacts& kernel, int threads, uint64_t dynamic_shared_bytes,
                 int* blocks) {
  const Device* facts = DeviceAt(device);
  if (facts == nullptr) return Status::kInvalidDevice;
  if (threads <= 0) return Status::kInvalidValue;
  const catalogue::Limits& limits = *facts->limits;
  *blocks = 0;
  uint64_t asked = dynamic_shared_bytes + static_cast<uint64_t>(kernel.static_shared_bytes);
  if (threads > std::min(limits.threads_per_block, kernel.threads_per_block)) return Status::kOk;
  if (asked > static_cast<uint64_t>(limits.shared_per_block_opt_in)) return Status::kOk;

  int warps = (threads + 31) / 32;
  int by_warps = limits.threads_per_multiprocessor / 32 / warps;
  int by_registers = kernel.registers > 0 ? BlocksByRegisters(limits, kernel.registers, warps) : by_warps;
  int shared =
      RoundUp(static_cast<int>(asked) + limits.shared_reserved_per_block, limits.shared_allocation_unit);
  int by_shared = shared > 0 ? limits.shared_per_multiprocessor / shared : limits.blocks_per_multiprocessor;
  *blocks = std::min({by_warps, by_registers, by_shared, limits.blocks_per_multiprocessor});
  return Status::kOk;
}

}  // namespace vramtrace::simulator
