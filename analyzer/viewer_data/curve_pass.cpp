#include "analyzer/viewer_data/curve_pass.h"

#include <algorithm>

#include "analyzer/trace/event_stream.h"

namespace vramtrace::viewer_data {

using attribution::MemoryClass;
using trace::Event;

CurvePass::CurvePass(std::shared_ptr<const model::Tables> tables,
                     std::shared_ptr<const model::StackTable> stacks, uint64_t first_time_ns,
                     const std::vector<uint8_t>& classes)
    : replay_(std::move(tables), std::move(stacks)), first_time_ns_(first_time_ns), classes_(classes) {}

// Sums are modulo 2^64: adding and taking away cancel even where a hostile trace adds up to more.
void CurvePass::Device::Add(const Size& size) {
  bands[size.memory_class] += size.tensor;
  bands[kBands - 1] += size.block - size.tensor;
}

void CurvePass::Device::Remove(const Size& size) {
  bands[size.memory_class] -= size.tensor;
  bands[kBands - 1] -= size.block - size.tensor;
}

void CurvePass::Follow(const timeline::Applied& applied, Device* device) {
  if (applied.allocated != nullptr) {
    const timeline::Block& block = *applied.allocated;
    const auto unknown = static_cast<uint8_t>(MemoryClass::kUnknown);
    const Size size{block.TensorBytes(), block.bytes,
                    ordinal_ < classes_.size() ? classes_[ordinal_] : unknown};
    ++ordinal_;
    if (const Size* old = device->alive.Find(block.address)) device->Remove(*old);  // its free was lost
    device->alive.Insert(block.address, size);
    device->Add(size);
  }
  if (!applied.freed) return;
  Size* size = device->alive.Find(applied.freed->address);
  if (size == nullptr) return;
  device->Remove(*size);
  device->alive.Erase(size);
}

void CurvePass::Add(const Event& event, std::vector<Mark>* marks) {
  const uint32_t index = trace::Raw(event.device);
  const auto before = replay_.devices().find(index);
  const uint64_t reserved_before = before == replay_.devices().end() ? 0 : before->second.memory.reserved();
  const timeline::Applied applied = replay_.Apply(event);
  if (applied.device == nullptr) return;
  const Tick tick = ticks_++;
  for (Mark& mark : *marks) {
    if (mark.tick == kNever && mark.sequence == event.sequence && mark.device == index) mark.tick = tick;
  }
  Device& device = devices_[index];
  Follow(applied, &device);
  segments_.Add(event, applied, reserved_before, tick);
  const timeline::DeviceMemory& memory = applied.device->memory;
  CurvePoint point;
  point.tick = tick;
  point.time_ns = applied.instant.time_ns - std::min(applied.instant.time_ns, first_time_ns_);
  point.allocated = memory.allocated();
  point.reserved = memory.reserved();
  if (const auto used = memory.device_used()) point.used = static_cast<double>(*used);
  point.step = applied.instant.step;
  point.phase = applied.instant.phase;
  curves_[index].Add(point, device.bands);
}

void CurvePass::Run(const std::shared_ptr<trace::TraceFile>& file, std::vector<Mark>* marks) {
  trace::EventStream stream(file);
  Event event;
  while (stream.Next(&event)) Add(event, marks);
}

}  // namespace vramtrace::viewer_data
