#include "analyzer/forecast/reductions.h"

#include "preload/catalogue/catalogue.h"

namespace vramtrace::forecast {
namespace {

// Of the vectorised kernel: four outputs a thread, 32 threads side by side, 128 in a block, sums in single
// precision.
constexpr Bytes kOutputsPerBlock = 128;
constexpr Bytes kThreadsPerBlock = 128;
constexpr Bytes kBytesPerSum = 4;
constexpr Bytes kBytesPerSemaphore = 4;
constexpr Bytes kMostBlocksOfOutputs = 65535;

Bytes DivideUp(Bytes a, Bytes b) { return (a + b - 1) / b; }

// How many blocks the card runs at once; 0 where it is not known.
Bytes BlocksAtOnce(const RunFacts& facts) {
  const catalogue::Gpu* gpu = catalogue::FindGpu(facts.gpu);
  if (gpu == nullptr) return 0;
  const auto threads = static_cast<Bytes>(catalogue::LimitsOf(*gpu).threads_per_multiprocessor);
  return static_cast<Bytes>(gpu->multiprocessors) * threads / kThreadsPerBlock;
}

// The buffer of `outputs` blocks of outputs when the card is full.
Bytes FullBuffer(Bytes outputs, Bytes at_once) {
  return kBytesPerSum * outputs * kOutputsPerBlock * DivideUp(at_once, outputs) * kOutputsPerBlock;
}

}  // namespace

bool IsReduction(const Stream& stream, size_t place) {
  if (place + 3 >= stream.events.size()) return false;
  const Event* events = &stream.events[place];
  if (events[0].kind != EventKind::kAllocate || events[1].kind != EventKind::kAllocate) return false;
  if (events[2].kind != EventKind::kFree || events[3].kind != EventKind::kFree) return false;
  const RequestId buffer = events[0].request;
  const RequestId semaphores = events[1].request;
  const bool both = (events[2].request == buffer && events[3].request == semaphores) ||
                    (events[2].request == semaphores && events[3].request == buffer);
  const Bytes bytes = stream[semaphores].bytes;
  return both && bytes != 0 && bytes % kBytesPerSemaphore == 0 &&
         bytes / kBytesPerSemaphore <= kMostBlocksOfOutputs;
}

void LimitReductions(Stream* stream) {
  const Bytes at_once = BlocksAtOnce(stream->facts);
  if (at_once == 0) return;
  for (size_t place = 0; place < stream->events.size(); ++place) {
    if (!IsReduction(*stream, place)) continue;
    Request& buffer = (*stream)[stream->events[place].request];
    const Bytes outputs = (*stream)[stream->events[place + 1].request].bytes / kBytesPerSemaphore;
    const Bytes full = FullBuffer(outputs, at_once);
    SizeLaw& law = buffer.law;
    const bool follows = law.slope > 0 || law.square > 0;
    // Another kernel where the recorded size is beyond what this one has; a full one says nothing of smaller
    // batches and stays.
    if (buffer.bytes > full || !follows) continue;
    if (buffer.bytes == full && law.basis == LawBasis::kRule) {
      law = SizeLaw::Fixed(full, LawBasis::kRule);
    } else {
      law.most = full;
    }
  }
}

}  // namespace vramtrace::forecast
