#pragma once
// The packets as plain values, one struct a message of vramtrace.proto, in the same order and with the same
// names. Text is a view of the caller's bytes. The proto says what each field means.

#include <cstdint>
#include <span>
#include <string_view>

namespace vramtrace::trace {

struct StringPacket {
  uint32_t id = 0;
  std::string_view text{};
};

struct CodePacket {
  uint32_t id = 0;
  uint32_t file = 0;
  uint32_t qualified_name = 0;
  uint32_t first_line = 0;
};

struct FramePacket {
  uint32_t id = 0;
  uint32_t code = 0;
  uint32_t line = 0;
  uint64_t module_object = 0;
  uint64_t pc = 0;
  uint32_t binary = 0;
};

struct StackPacket {
  uint32_t id = 0;
  uint32_t parent = 0;
  uint32_t frame = 0;
};

struct BinaryPacket {
  uint32_t id = 0;
  uint32_t path = 0;
  std::string_view build_id{};  // bytes
  uint64_t load_bias = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
};

// Written when any field is set.
struct AutogradFields {
  uint64_t sequence_number = 0;
  uint32_t operator_name = 0;
  uint64_t node_thread = 0;
};

struct BlockAllocatePacket {
  int64_t address_delta = 0;
  uint64_t bytes = 0;
  uint64_t requested = 0;
  uint32_t stack = 0;
  uint32_t device = 0;
  uint32_t thread = 0;
  AutogradFields autograd{};
  uint64_t allocated_total = 0;
  uint64_t reserved_total = 0;
};

struct BlockFreePacket {
  int64_t address_delta = 0;
  uint64_t bytes = 0;
  uint32_t stack = 0;
  uint32_t device = 0;
  AutogradFields autograd{};
  uint64_t allocated_total = 0;
  uint64_t reserved_total = 0;
};

struct DriverAllocatePacket {
  int64_t address_delta = 0;
  uint64_t bytes = 0;
  uint32_t stack = 0;
  uint32_t device = 0;
  uint32_t kind = 0;  // MemoryKind
  uint32_t function = 0;
  uint32_t caller = 0;
  uint32_t result = 0;
  uint64_t stream = 0;
  uint64_t duration_ns = 0;
};

struct DriverFreePacket {
  int64_t address_delta = 0;
  uint32_t stack = 0;
  uint32_t device = 0;
  uint32_t kind = 0;  // MemoryKind
  uint32_t function = 0;
  uint32_t caller = 0;
  uint32_t result = 0;
  uint64_t stream = 0;
};

struct MemoryMapPacket {
  int64_t address_delta = 0;
  uint64_t bytes = 0;
  uint64_t handle = 0;
  uint64_t offset = 0;
  uint32_t device = 0;
};

struct MemoryUnmapPacket {
  int64_t address_delta = 0;
  uint64_t bytes = 0;
  uint32_t device = 0;
};

struct HostAllocatePacket {
  int64_t address_delta = 0;
  uint64_t bytes = 0;
  uint32_t stack = 0;
  uint32_t function = 0;
  uint32_t caller = 0;
  uint32_t result = 0;
};

struct HostFreePacket {
  int64_t address_delta = 0;
  uint32_t stack = 0;
  uint32_t function = 0;
  uint32_t caller = 0;
  uint32_t result = 0;
};

struct MemoryQueryPacket {
  uint32_t device = 0;
  uint64_t free_bytes = 0;
  uint64_t total_bytes = 0;
  uint32_t reason = 0;  // MemoryQuery.Reason
};

struct OutOfMemoryPacket {
  uint64_t requested = 0;
  uint64_t allocated_total = 0;
  uint64_t reserved_total = 0;
  uint32_t device = 0;
  uint32_t stack = 0;
  AutogradFields autograd{};
};

struct LabelPacket {
  int64_t address_delta = 0;
  uint64_t bytes = 0;
  uint32_t kind = 0;  // Label.Kind
  uint32_t name = 0;
  uint32_t state_key = 0;
  uint32_t dtype = 0;
  std::span<const int64_t> shape{};
  uint32_t device = 0;
};

struct ModulePacket {
  uint64_t object = 0;
  uint32_t path = 0;
  uint32_t class_name = 0;
  uint64_t parent = 0;
};

struct StepPacket {
  uint64_t number = 0;
  uint32_t edge = 0;  // Step.Edge
  uint32_t optimizer = 0;
  uint64_t optimizer_object = 0;
};

struct PhaseMarkPacket {
  uint32_t name = 0;
  bool end = false;
};

struct InputTensorPacket {
  uint32_t name = 0;
  int64_t address_delta = 0;
  uint64_t bytes = 0;
  std::span<const int64_t> shape{};
  uint32_t dtype = 0;
  uint64_t step = 0;
  bool on_device = false;
  uint64_t module_object = 0;
};

struct ProcessPacket {
  uint32_t pid = 0;
  uint32_t parent_pid = 0;
  uint32_t rank = 0;
  uint32_t local_rank = 0;
  uint32_t world_size = 0;
  uint64_t start_unix_ns = 0;
  uint64_t start_monotonic_ns = 0;
  std::span<const std::string_view> argument{};
  std::span<const std::string_view> environment{};
  std::string_view host{};
  std::string_view executable{};
  std::string_view writer_version{};
  std::string_view python_version{};
  std::string_view torch_version{};
  std::string_view working_folder{};
  bool simulated = false;
  std::string_view driver_version{};
  std::string_view cuda_runtime_version{};
};

struct DevicePacket {
  uint32_t device = 0;
  std::string_view name{};
  uint64_t total_bytes = 0;
  uint32_t compute_major = 0;
  uint32_t compute_minor = 0;
  uint32_t multiprocessors = 0;
  std::string_view uuid{};
};

struct ContextPacket {
  uint32_t device = 0;
  uint64_t context = 0;
  bool destroyed = false;
};

struct ThreadPacket {
  uint32_t id = 0;
  uint32_t system_id = 0;
  std::string_view name{};
};

struct FeaturePacket {
  uint32_t name = 0;
  bool on = false;
  std::string_view reason{};
};

struct LossPacket {
  uint32_t reason = 0;  // LossReason
  uint64_t events = 0;
  std::string_view text{};
};

struct DroppedPacket {
  uint64_t first_sequence = 0;
  uint64_t last_sequence = 0;
  uint64_t events = 0;
  uint64_t first_step = 0;
  uint64_t steps = 0;
  uint64_t first_time_ns = 0;
  uint64_t last_time_ns = 0;
};

struct StepSummaryPacket {
  uint64_t first_step = 0;
  uint64_t steps = 0;
  uint32_t device = 0;
  uint64_t peak = 0;
  uint64_t low = 0;
  uint64_t reserved = 0;
  uint64_t driver = 0;
  uint64_t events = 0;
  uint64_t retries = 0;
  uint64_t end_time_ns = 0;
  uint64_t last_sequence = 0;
};

struct TrailerPacket {
  uint64_t events = 0;
  uint64_t block_allocations = 0;
  uint64_t block_frees = 0;
  uint64_t driver_allocations = 0;
  uint64_t lost_events = 0;
};

// Loss.Reason of vramtrace.proto.
enum class LossReason : uint32_t {
  kUnknown,
  kDiskFull,
  kChunk,
  kTableFull,
  kStackTooDeep,
  kStopped,
};

}  // namespace vramtrace::trace
