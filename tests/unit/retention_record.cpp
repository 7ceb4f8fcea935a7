#include "preload/recorder/record/recorder.h"
#include "tests/unit/record_scenario.h"
#include "tests/unit/retention_workload.h"

namespace vramtrace::tests {

using Kind = WorkloadEvent::Kind;

void RecordEvent(const WorkloadEvent& event) {
  const FakeStack stack(4, event.backward ? 8 : 0);
  const record::BlockEvent block{.device = 0,
                                 .address = event.address,
                                 .bytes = event.bytes,
                                 .requested = event.bytes,
                                 .allocated_total = event.allocated,
                                 .reserved_total = 0};
  switch (event.kind) {
    case Kind::kAllocate:
      return record::BlockAllocated(block, stack.Captured());
    case Kind::kFree:
      return record::BlockFreed(block, stack.Captured());
    case Kind::kDriverAllocate:
      return record::DriverAllocated(
          {.function = "cudaMalloc", .address = event.address, .bytes = event.bytes}, stack.Captured());
    case Kind::kDriverFree:
      return record::DriverFreed({.function = "cudaFree", .address = event.address}, stack.Captured());
    case Kind::kLabel:
      return record::Labelled({.kind = record::LabelKind::kParameter,
                               .address = event.address,
                               .bytes = event.bytes,
                               .device = 0,
                               .name = "weight",
                               .state_key = {},
                               .dtype = "float32",
                               .shape = nullptr,
                               .shape_count = 0});
    case Kind::kStepBegin:
    case Kind::kStepEnd:
      return record::StepMarked(event.step, event.kind == Kind::kStepEnd, "AdamW", 1);
  }
}

}  // namespace vramtrace::tests
