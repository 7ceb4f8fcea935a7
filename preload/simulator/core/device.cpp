#include "preload/simulator/core/device.h"

#include <cuda.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "preload/simulator/core/faults.h"
#include "preload/simulator/core/log.h"
#include "preload/simulator/core/options.h"
#include "preload/simulator/core/python_exit.h"
#include "preload/simulator/core/report.h"
#include "preload/simulator/core/scenario.h"
#include "preload/simulator/core/state.h"

extern "C" const int vramtrace_simulator_present = 1;

namespace vramtrace::simulator {
namespace {

thread_local int current_device __attribute__((tls_model("initial-exec"))) = 0;
std::atomic<bool> forked{false};
std::atomic<int> driver_version{CUDA_VERSION};

void FillIdentity(Device& device, int physical) {
  std::memcpy(device.uuid, "vramtrace-sim", 13);
  device.uuid[15] = static_cast<unsigned char>(physical);
  std::snprintf(device.pci_bus_id, sizeof device.pci_bus_id, "0000:%02X:00.0",
                static_cast<unsigned>(physical + 1) & 0xff);
}

// The slice of that name on this family of cards: MigProfile::gpu is a prefix of the card's id.
const catalogue::MigProfile* FindSlice(const catalogue::Gpu& gpu, const std::string& profile) {
  for (const catalogue::MigProfile& slice : catalogue::MigProfiles()) {
    if (slice.profile == profile && gpu.id.starts_with(slice.gpu.substr(0, slice.gpu.find('-')))) {
      return &slice;
    }
  }
  Warn("mig = %s: the catalogue has no such slice of %s", profile.c_str(), std::string(gpu.id).c_str());
  return nullptr;
}

void ApplyScenario(Device& device) {
  const Scenario scenario = ScenarioOf(device.physical);
  if (!scenario.name.empty()) device.name = scenario.name;
  if (scenario.multiprocessors) device.multiprocessors = static_cast<int>(*scenario.multiprocessors);
  // Source of the share: data sheets of GDDR6 cards with ECC on and off (catalogue notes).
  if (scenario.ecc.value_or(0) > 0) {
    device.total_bytes = device.total_bytes / 16 * 15;
    device.nvml_total_bytes = device.nvml_total_bytes / 16 * 15;
  }
  if (!scenario.mig.empty()) {
    if (const auto* slice = FindSlice(*device.gpu, scenario.mig)) {
      device.name += " MIG " + scenario.mig;
      device.multiprocessors = slice->multiprocessors;
      device.total_bytes = slice->memory_bytes;  // NVML's total stays the whole card's
    }
  }
  if (scenario.limiter) device.total_bytes = *scenario.limiter;
  device.other_tenant_bytes = scenario.other_tenant.value_or(0);
}

// The machine's devices, before CUDA_VISIBLE_DEVICES.
std::vector<Device>* MakeMachine() {
  auto* machine = new std::vector<Device>;
  const Options& options = CurrentOptions();
  const catalogue::Gpu* gpu = catalogue::FindGpu(options.gpu);
  if (gpu == nullptr) {
    Warn("%s", catalogue::UnknownGpuMessage(options.gpu).c_str());
    return machine;
  }
  std::string why;
  auto totals = catalogue::TotalsOf(*gpu, &why);
  if (!totals && options.total_bytes == 0) {
    Warn("%s", why.c_str());
    return machine;
  }
  Device device;
  device.gpu = gpu;
  device.limits = &catalogue::LimitsOf(*gpu);
  device.total_bytes = options.total_bytes != 0 ? options.total_bytes : totals->cuda_bytes;
  device.nvml_total_bytes = options.total_bytes != 0 || !totals ? device.total_bytes : totals->nvml_bytes;
  uint64_t context =
      options.context_bytes == kFromCatalogue ? catalogue::ContextOf(*gpu).bytes : options.context_bytes;
  device.context_bytes = (context + kPageBytes - 1) / kPageBytes * kPageBytes;
  for (int i = 0; i < options.count; ++i) {
    Device card = device;
    card.index = card.physical = i;
    card.name = gpu->device_name;
    card.multiprocessors = gpu->multiprocessors;
    FillIdentity(card, i);
    ApplyScenario(card);
    machine->push_back(std::move(card));
  }
  return machine;
}

const std::vector<Device>& Machine() {
  static const std::vector<Device>* machine = MakeMachine();
  return *machine;
}

// One entry of CUDA_VISIBLE_DEVICES: an ordinal or a prefix of GPU-<uuid>; -1 when it names no device.
int PhysicalIndex(const std::string& entry) {
  char* end = nullptr;
  long ordinal = std::strtol(entry.c_str(), &end, 10);
  if (end != entry.c_str() && *end == '\0') {
    return ordinal >= 0 && ordinal < static_cast<long>(Machine().size()) ? static_cast<int>(ordinal) : -1;
  }
  for (const Device& device : Machine()) {
    if (!entry.empty() && UuidText(device).starts_with(entry)) return device.index;
  }
  return -1;
}

// As CUDA reads it: entries up to the first bad one; an empty value hides every device.
std::vector<Device>* MakeVisible() {
  const char* text = std::getenv("CUDA_VISIBLE_DEVICES");
  if (text == nullptr) return new std::vector<Device>(Machine());
  auto* visible = new std::vector<Device>;
  std::string rest = text;
  while (!rest.empty()) {
    size_t comma = rest.find(',');
    int physical = PhysicalIndex(rest.substr(0, comma));
    if (physical < 0) break;
    Device device = Machine()[static_cast<size_t>(physical)];
    device.index = static_cast<int>(visible->size());
    visible->push_back(device);
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
  }
  return visible;
}

const std::vector<Device>& Visible() {
  static const std::vector<Device>* visible = MakeVisible();
  return *visible;
}

}  // namespace

std::string UuidText(const Device& device) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char byte[3];
    std::snprintf(byte, sizeof byte, "%02x", device.uuid[i]);
    text += byte;
    if (i == 3 || i == 5 || i == 7 || i == 9) text += '-';
  }
  return text;
}

int DeviceCount() { return static_cast<int>(Visible().size()); }

const Device* DeviceAt(int index) {
  return index >= 0 && index < DeviceCount() ? &Visible()[static_cast<size_t>(index)] : nullptr;
}

int PhysicalDeviceCount() { return static_cast<int>(Machine().size()); }

const Device* PhysicalDeviceAt(int index) {
  return index >= 0 && index < PhysicalDeviceCount() ? &Machine()[static_cast<size_t>(index)] : nullptr;
}

int CurrentDevice() { return current_device; }

Status SetCurrentDevice(int index) {
  if (Forked()) return Status::kForked;
  if (DeviceAt(index) == nullptr) return Status::kInvalidDevice;
  current_device = index;
  return Status::kOk;
}

int DriverVersion() { return driver_version.load(std::memory_order_relaxed); }
void RuntimeInUse(int version) { driver_version.store(version, std::memory_order_relaxed); }

bool Forked() { return forked.load(std::memory_order_relaxed); }
void MarkForked() { forked.store(true, std::memory_order_relaxed); }

Status EnsureContext(int device) {
  if (Forked()) return Status::kForked;
  const Device* facts = DeviceAt(device);
  if (facts == nullptr) return Status::kInvalidDevice;
  State& state = TheState();
  DeviceBook& book = state.books[static_cast<size_t>(device)];
  if (book.has_context.load(std::memory_order_acquire)) return Status::kOk;
  std::lock_guard lock(state.mutex);
  if (book.has_context.load(std::memory_order_relaxed)) return Status::kOk;
  report::Open();
  if (facts->other_tenant_bytes != 0) {
    (void)Charge(state, device, facts->other_tenant_bytes, "other processes");
  }
  if (ShouldFail(CallKind::kContext) || !Charge(state, device, facts->context_bytes, "context")) {
    return Status::kOutOfMemory;
  }
  book.has_context.store(true, std::memory_order_release);
  report::UpdateDevice(device);
  RegisterPythonExit();
  return Status::kOk;
}

bool HasContext(int device) {
  return DeviceAt(device) != nullptr &&
         TheState().books[static_cast<size_t>(device)].has_context.load(std::memory_order_acquire);
}

Status Ready(int device) { return EnsureContext(device); }

}  // namespace vramtrace::simulator
