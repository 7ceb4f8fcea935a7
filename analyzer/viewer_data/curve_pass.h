#pragma once
// One replay of a trace: the curve of each device, what was taken from the driver, and where instants lie.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "analyzer/timeline/replay.h"
#include "analyzer/viewer_data/curve.h"
#include "analyzer/viewer_data/segments.h"

namespace vramtrace::viewer_data {

// An instant that the report speaks of.
struct Mark {
  uint32_t device = 0;
  std::string kind;  // peak_allocated, peak_reserved, peak_used, out_of_memory
  uint64_t sequence = 0;
  Tick tick = kNever;  // of the event with that sequence number
};

class CurvePass {
 public:
  // `first_time_ns`: where the time axis begins. `classes`: of blocks, by the ordinal of their allocation;
  // empty while they are not known.
  CurvePass(std::shared_ptr<const model::Tables> tables, std::shared_ptr<const model::StackTable> stacks,
            uint64_t first_time_ns, const std::vector<uint8_t>& classes);

  // Fills the ticks of `marks`.
  void Run(const std::shared_ptr<trace::TraceFile>& file, std::vector<Mark>* marks);

  [[nodiscard]] const std::map<uint32_t, Curve>& curves() const { return curves_; }
  [[nodiscard]] SegmentLives& segments() { return segments_; }
  [[nodiscard]] std::map<uint32_t, timeline::DeviceState>& devices() { return replay_.devices(); }
  [[nodiscard]] Tick ticks() const { return ticks_; }

 private:
  struct Size {
    uint64_t tensor = 0;
    uint64_t block = 0;
    uint8_t memory_class = 0;
  };
  struct Device {
    timeline::AddressMap<Size> alive;
    Bands bands{};
    void Add(const Size& size);
    void Remove(const Size& size);
  };

  void Add(const trace::Event& event, std::vector<Mark>* marks);
  void Follow(const timeline::Applied& applied, Device* device);

  timeline::Replay replay_;
  uint64_t first_time_ns_;
  const std::vector<uint8_t>& classes_;
  std::map<uint32_t, Device> devices_;
  std::map<uint32_t, Curve> curves_;
  SegmentLives segments_;
  uint64_t ordinal_ = 0;
  Tick ticks_ = 0;
};

}  // namespace vramtrace::viewer_data
