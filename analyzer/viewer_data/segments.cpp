#include "analyzer/viewer_data/segments.h"

namespace vramtrace::viewer_data {

using trace::PacketKind;

void SegmentLives::Open(const Segment& segment) {
  open_[{segment.device, segment.address}] = segments_.size();
  segments_.push_back(segment);
}

void SegmentLives::Close(std::map<Place, size_t>::iterator entry, bool caching, Tick tick) {
  Segment& segment = segments_[entry->second];
  segment.freed = tick;
  segment.caching = segment.caching || caching;
  open_.erase(entry);
}

void SegmentLives::Add(const trace::Event& event, const timeline::Applied& applied, uint64_t reserved_before,
                       Tick tick) {
  if (event.result != 0 || event.memory_kind == trace::MemoryKind::kPhysical) return;
  const uint32_t device = applied.device_index;
  const uint64_t reserved = applied.device->memory.reserved();
  if (event.kind == PacketKind::kDriverAllocate || event.kind == PacketKind::kMemoryMap) {
    const auto old = open_.find({device, event.address});
    if (old != open_.end()) Close(old, false, tick);  // its free was lost
    Open({device, event.address, event.bytes, tick, kNever, event.caller, reserved > reserved_before});
  } else if (event.kind == PacketKind::kDriverFree) {
    const auto found = open_.find({device, event.address});
    if (found != open_.end()) Close(found, reserved < reserved_before, tick);
  } else if (event.kind == PacketKind::kMemoryUnmap) {
    // One call may unmap several neighbouring pages.
    auto entry = open_.lower_bound({device, event.address});
    while (entry != open_.end() && entry->first.first == device &&
           entry->first.second - event.address < event.bytes) {
      const auto next = std::next(entry);
      Close(entry, reserved < reserved_before, tick);
      entry = next;
    }
  }
}

void SegmentLives::Finish(std::map<uint32_t, timeline::DeviceState>& devices) {
  // A segment may turn out to be the caching allocator's when its first block comes.
  for (const auto& [place, index] : open_) {
    const auto& alive = devices[place.first].memory.segments();
    const auto found = alive.find(place.second);
    if (found != alive.end()) segments_[index].caching = found->second.caching;
  }
}

void SegmentLives::Write(const model::Tables& tables, Strings* strings, Columns* columns) const {
  std::vector<uint8_t> device;
  std::vector<uint8_t> caching;
  std::vector<double> address;
  std::vector<double> bytes;
  std::vector<uint32_t> allocated;
  std::vector<uint32_t> freed;
  std::vector<uint32_t> caller;
  for (const Segment& segment : segments_) {
    device.push_back(static_cast<uint8_t>(segment.device));
    caching.push_back(segment.caching ? 1 : 0);
    address.push_back(static_cast<double>(segment.address));
    bytes.push_back(static_cast<double>(segment.bytes));
    allocated.push_back(segment.allocated);
    freed.push_back(segment.freed);
    caller.push_back(strings->Id(tables.Text(segment.caller)));
  }
  columns->Add("segment.device", device);
  columns->Add("segment.caching", caching);
  columns->Add("segment.address", address);
  columns->Add("segment.bytes", bytes);
  columns->Add("segment.allocated", allocated);
  columns->Add("segment.freed", freed);
  columns->Add("segment.caller", caller);
}

}  // namespace vramtrace::viewer_data
