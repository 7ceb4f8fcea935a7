#include "analyzer/report/refusal_text.h"

#include <fmt/format.h>

#include "analyzer/report/units.h"
#include "analyzer/symbolize/names.h"

namespace vramtrace::report {
namespace {

using attribution::OutOfMemory;
using attribution::Reason;

std::string_view ReasonName(Reason reason) {
  switch (reason) {
    case Reason::kShortage:
      return "shortage";
    case Reason::kFragmentation:
      return "fragmentation";
    case Reason::kLimit:
      return "limit";
    case Reason::kUnknown:
      return "unknown";
  }
  return "?";
}

std::string Exact(uint64_t bytes) { return fmt::format("{} ({} B)", Size(bytes), Grouped(bytes)); }

std::string Summary(const OutOfMemory& facts) {
  const std::string asked = Size(facts.from_driver);
  switch (facts.reason) {
    case Reason::kShortage:
      return fmt::format("{} was asked for and {} was free: {} short.", asked, Size(facts.device_free),
                         Size(facts.missing));
    case Reason::kFragmentation:
      return fmt::format(
          "{} was asked for and {} is cached free, but in pieces of at most {}: fragmentation, not "
          "shortage.",
          Size(facts.requested), Size(facts.cached_free), Size(facts.largest_hole));
    case Reason::kLimit:
      return fmt::format("{} was asked for and refused although {} was free: a limit below the device's own.",
                         asked, Size(facts.device_free));
    case Reason::kUnknown:
      return fmt::format("{} was asked for; how much was free is not known.", asked);
  }
  return {};
}

std::string RequestSentence(const OutOfMemory& facts, const std::string& caller) {
  if (!facts.caching_allocator) {
    return fmt::format("{} asked the driver for {}, past PyTorch's caching allocator.",
                       caller.empty() ? "A library" : symbolize::Printable(caller), Exact(facts.requested));
  }
  if (facts.from_driver == facts.requested) return fmt::format("A block of {}.", Exact(facts.requested));
  return fmt::format("A block of {}; for it the caching allocator {} of the driver.", Exact(facts.requested),
                     fmt::format("{} {}", facts.from_driver_recorded ? "asked" : "asks by its rules",
                                 Exact(facts.from_driver)));
}

std::string DeviceSentence(const OutOfMemory& facts) {
  if (!facts.free_known) return "The device was never asked how much is free.";
  return fmt::format("{} in all, {} used, {} free.", Exact(facts.device_total), Exact(facts.device_used),
                     Exact(facts.device_free));
}

std::string CacheSentence(const OutOfMemory& facts) {
  if (facts.cached_free == 0) {
    return fmt::format("{} reserved, all of it allocated.", Exact(facts.reserved));
  }
  return fmt::format("{} reserved, {} allocated; the rest, {}, is cached free{}.", Exact(facts.reserved),
                     Exact(facts.allocated), Exact(facts.cached_free),
                     facts.holes == 0 ? std::string()
                                      : fmt::format(": for a request of this size {}, the largest {}",
                                                    Count(facts.holes, "piece"), Exact(facts.largest_hole)));
}

std::string LargestSentence(const v1::Breakdown& breakdown) {
  constexpr int kMost = 4;
  std::string text;
  for (int i = 0; i < std::min(kMost, breakdown.classes_size()); ++i) {
    const v1::ClassRow& row = breakdown.classes(i);
    text += fmt::format("{}{} {} ({})", i == 0 ? "" : ", ", row.words(), Size(row.bytes()),
                        Share(static_cast<double>(row.bytes()), static_cast<double>(breakdown.allocated())));
  }
  return text.empty() ? "nothing is allocated." : text + " of what is allocated.";
}

bool ExpandableSegments(const vramtrace::v1::Process& process) {
  for (const std::string& variable : process.environment()) {
    if (variable.find("ALLOC_CONF=") == std::string::npos) continue;
    if (variable.find("expandable_segments:True") != std::string::npos) return true;
  }
  return false;
}

std::string NeededSentence(const OutOfMemory& facts, const vramtrace::v1::Process& process) {
  switch (facts.reason) {
    case Reason::kShortage:
      return fmt::format(
          "A device with {} for this one request, everything else unchanged. The step was not over: what "
          "comes after it may need more.",
          Exact(facts.device_needed));
    case Reason::kFragmentation:
      return ExpandableSegments(process)
                 ? "One free piece of that size. Expandable segments are on already: fewer sizes help, or "
                   "freeing the "
                   "blocks that lie between the pieces."
                 : "One free piece of that size. PYTORCH_ALLOC_CONF=expandable_segments:True "
                   "(PYTORCH_CUDA_ALLOC_CONF "
                   "before PyTorch 2.9) lets the allocator join pieces.";
    case Reason::kLimit:
      return "A look at set_per_process_memory_fraction, PYTORCH_ALLOC_CONF, MPS and vGPU limits.";
    case Reason::kUnknown:
      return "The device's free memory, which this trace does not hold.";
  }
  return {};
}

}  // namespace

std::string Place(const v1::Moment& moment) {
  std::string text = fmt::format("step {}, {}", moment.step(), moment.phase());
  if (moment.has_module()) {
    const std::string path = symbolize::Printable(moment.module_path());
    text += fmt::format(", {} ({})", path.empty() ? "the root module" : path,
                        symbolize::Printable(moment.module_class()));
  }
  if (!moment.operator_().empty()) text += fmt::format(", {}", symbolize::Printable(moment.operator_()));
  return text;
}

void WordRefusal(const OutOfMemory& facts, const std::string& caller, const vramtrace::v1::Process& process,
                 v1::DeviceReport* device) {
  v1::OutOfMemory* out = device->mutable_out_of_memory();
  out->set_reason(std::string(ReasonName(facts.reason)));
  out->set_summary(fmt::format("Out of memory on GPU {}: {}", device->device(), Summary(facts)));
  const auto add = [&](std::string_view what, std::string text) {
    v1::Fact* fact = out->add_arithmetic();
    fact->set_what(std::string(what));
    fact->set_text(std::move(text));
  };
  add("when", Place(out->moment()));
  if (!out->moment().site().empty()) add("where", symbolize::Printable(out->moment().site()));
  if (!out->moment().script().empty() && out->moment().script() != out->moment().site()) {
    add("called by", symbolize::Printable(out->moment().script()));
  }
  add("request", RequestSentence(facts, caller));
  add("device", DeviceSentence(facts));
  if (facts.caching_allocator) add("cache", CacheSentence(facts));
  add("largest", LargestSentence(device->at_refusal()));
  add("needed", NeededSentence(facts, process));
}

}  // namespace vramtrace::report
