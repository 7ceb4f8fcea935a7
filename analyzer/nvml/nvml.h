#pragma once
// NVIDIA's management library, opened at run time: the analyzer needs no driver to start. Every question has
// an answer or a reason why there is none, in words for the user.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace vramtrace::nvml {

template <typename T>
struct Answer {
  std::optional<T> value;
  std::string why;  // where there is none

  [[nodiscard]] explicit operator bool() const { return value.has_value(); }
  [[nodiscard]] const T& operator*() const { return *value; }
  [[nodiscard]] T Or(T other) const { return value.value_or(other); }
};

struct Memory {
  uint64_t total = 0;
  uint64_t used = 0;      // by processes; where `reserved` is not told, that is in it
  uint64_t reserved = 0;  // by the driver and firmware; 0 where not told
};

struct Utilization {
  unsigned gpu = 0;     // percent of the last 1/6 to 1 s in which a kernel ran
  unsigned memory = 0;  // likewise, in which device memory was read or written: no occupancy
};

struct Process {
  uint32_t pid = 0;
  std::optional<uint64_t> bytes;  // not told inside some containers
};

struct PcieLink {
  unsigned generation = 0;
  unsigned width = 0;
  bool operator==(const PcieLink&) const = default;
};

// Bits of why clocks are below what they could be (nvml.h, nvmlClocksEventReason*).
enum Throttle : uint64_t {
  kIdle = 0x1,
  kApplicationClocks = 0x2,
  kPowerCap = 0x4,
  kHardwareSlowdown = 0x8,
  kSyncBoost = 0x10,
  kThermalSoftware = 0x20,
  kThermalHardware = 0x40,
  kPowerBrake = 0x80,
};
inline constexpr uint64_t kThermal = kThermalSoftware | kThermalHardware;
inline constexpr uint64_t kPower = kPowerCap | kPowerBrake;

enum class Virtualization { kNone, kPassthrough, kVirtualGpu, kHost };

class Library;

// A card of the machine, whatever CUDA_VISIBLE_DEVICES says. Valid while its library lives.
class Device {
 public:
  Device(const Library* library, void* handle) : library_(library), handle_(handle) {}

  [[nodiscard]] Answer<std::string> Name() const;
  [[nodiscard]] Answer<std::string> Uuid() const;
  [[nodiscard]] Answer<std::string> BusId() const;
  [[nodiscard]] Answer<Memory> MemoryInfo() const;
  [[nodiscard]] Answer<Utilization> UtilizationRates() const;
  [[nodiscard]] Answer<unsigned> Celsius() const;
  [[nodiscard]] Answer<double> Watts() const;
  [[nodiscard]] Answer<double> WattsLimit() const;
  [[nodiscard]] Answer<unsigned> SmClock() const;  // MHz
  [[nodiscard]] Answer<unsigned> SmClockMost() const;
  [[nodiscard]] Answer<uint64_t> ThrottleReasons() const;  // bits of Throttle
  [[nodiscard]] Answer<PcieLink> LinkNow() const;          // an idle card lowers its generation
  [[nodiscard]] Answer<PcieLink> LinkMost() const;
  [[nodiscard]] Answer<bool> Ecc() const;
  [[nodiscard]] Answer<bool> Mig() const;
  [[nodiscard]] Answer<Virtualization> VirtualizationMode() const;
  [[nodiscard]] Answer<unsigned> NvLinks() const;  // active ones
  [[nodiscard]] Answer<std::vector<Process>> ComputeProcesses() const;

 private:
  const Library* library_;
  void* handle_;
};

class Library {
 public:
  // The driver's, by its soname; or a file, for tests. nullptr and `why` where there is none.
  [[nodiscard]] static std::unique_ptr<Library> Open(std::string* why,
                                                     const std::string& file = "libnvidia-ml.so.1");
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  [[nodiscard]] const std::vector<Device>& devices() const { return devices_; }
  [[nodiscard]] Answer<std::string> DriverVersion() const;
  [[nodiscard]] Answer<int> CudaVersion() const;  // 13020: what the driver supports

  struct Functions;
  [[nodiscard]] const Functions& functions() const { return *functions_; }
  [[nodiscard]] std::string Why(const char* function, int result) const;

 private:
  explicit Library(void* handle);

  void* handle_;
  std::unique_ptr<Functions> functions_;
  std::vector<Device> devices_;
};

// The UUID spells the simulated device's mark.
[[nodiscard]] bool IsSimulated(const Device& device);

}  // namespace vramtrace::nvml
