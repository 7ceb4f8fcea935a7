#pragma once
// Every block of a trace with its whole life and its class, in one pass: what Explain says of
// the blocks alive at one instant, for all of them.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "analyzer/attribution/breakdown.h"
#include "analyzer/timeline/scan.h"

namespace vramtrace::attribution {

// A tick is the ordinal of an event that concerns a device, over all devices. State "at" a tick is that after
// its event.
using Tick = uint32_t;
inline constexpr Tick kNever = UINT32_MAX;

// A block whose life is over, or which is alive at the end of the trace.
struct Life {
  uint32_t device = 0;
  uint64_t ordinal = 0;  // of its allocation, over all devices
  Tick allocated = 0;
  Tick freed = kNever;
  timeline::LiveBlock live;
  Allocation explained;
};

// What else may be learnt from the same pass: every event that concerns a device, in order.
class LivesObserver {
 public:
  virtual ~LivesObserver() = default;
  // After the event was applied.
  virtual void See(const trace::Event& event, const timeline::Applied& applied, Tick tick) = 0;
  // After the last event; the state of every device then.
  virtual void Finish(std::map<uint32_t, timeline::DeviceState>& devices) = 0;
};

// Calls `take` once for each block, in no order that means anything. Frees after the refusal that ended a
// device's run are no evidence, as in the report. `until`: number of the last event that is looked at; what
// is alive then is not freed.
void ForEachLife(const std::shared_ptr<trace::TraceFile>& file,
                 const std::shared_ptr<const model::Tables>& tables,
                 const std::shared_ptr<const model::StackTable>& stacks, const timeline::Scan& scan,
                 const std::function<void(const Life&)>& take, LivesObserver* observer = nullptr,
                 uint64_t until = UINT64_MAX);

}  // namespace vramtrace::attribution
