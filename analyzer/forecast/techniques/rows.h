#pragma once
// What the rows of technique.def name: a pair of functions a row, in the file of its group.

#include "analyzer/forecast/technique.h"

namespace vramtrace::forecast {

#define VRAMTRACE_ROW(is_on, apply)               \
  [[nodiscard]] bool is_on(const Stream& stream); \
  [[nodiscard]] Edited apply(const Stream& stream, const TechniqueOptions& options);
// checkpointing.cpp
VRAMTRACE_ROW(IsCheckpointed, ApplyCheckpointing)
[[nodiscard]] Edited ApplySelectiveCheckpointing(const Stream& stream, const TechniqueOptions& options);
// gradients.cpp
VRAMTRACE_ROW(GradientsGoRightAway, ApplySetToNone)
VRAMTRACE_ROW(HasBucketView, ApplyBucketView)
VRAMTRACE_ROW(IsAccumulating, ApplyAccumulation)
// muon.cpp
VRAMTRACE_ROW(IsMuon, ApplyMuon)
// offload.cpp
VRAMTRACE_ROW(IsStateOnHost, ApplyOptimizerOffload)
VRAMTRACE_ROW(IsOffloaded, ApplyActivationOffload)
// attention.cpp
VRAMTRACE_ROW(IsFusedAttention, ApplyFusedAttention)
// loss.cpp
VRAMTRACE_ROW(IsChunkedLoss, ApplyChunkedLoss)
// length.cpp
VRAMTRACE_ROW(IsNever, ApplyLength)
// optimizers.cpp
VRAMTRACE_ROW(IsForeachOff, ApplyForeachOff)
VRAMTRACE_ROW(IsFused, ApplyFused)
VRAMTRACE_ROW(IsSgd, ApplySgd)
VRAMTRACE_ROW(IsAdafactor, ApplyAdafactor)
VRAMTRACE_ROW(Is8Bit, Apply8BitAdam)
VRAMTRACE_ROW(IsPaged8Bit, ApplyPaged8Bit)
VRAMTRACE_ROW(IsLion, ApplyLion)
VRAMTRACE_ROW(IsInBackward, ApplyInBackward)
// lowrank.cpp
VRAMTRACE_ROW(IsLowRank, ApplyLora)
VRAMTRACE_ROW(IsQuantised, ApplyQlora)
// freeze.cpp
VRAMTRACE_ROW(IsFrozen, ApplyFreeze)
// autocast.cpp
VRAMTRACE_ROW(IsAutocast, ApplyAutocast)
// pure_half.cpp
VRAMTRACE_ROW(IsPureHalf, ApplyPureHalf)
// sharding.cpp
VRAMTRACE_ROW(IsZero, ApplyZero1)
[[nodiscard]] Edited ApplyZero2(const Stream& stream, const TechniqueOptions& options);
VRAMTRACE_ROW(IsFullShard, ApplyZero3)
VRAMTRACE_ROW(IsTensorParallel, ApplyTensorParallel)
void AddCommunicator(ReplayOptions* options, const TechniqueOptions& chosen);
// allocator_settings.cpp
VRAMTRACE_ROW(HasExpandableSegments, KeepStream)
void ExpandSegments(ReplayOptions* options, const TechniqueOptions& chosen);
#undef VRAMTRACE_ROW

}  // namespace vramtrace::forecast
