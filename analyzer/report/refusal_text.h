#pragma once
// The sentences about an out of memory: one that says why, and the arithmetic behind it.

#include <string>

#include "analyzer/attribution/out_of_memory.h"
#include "analyzer/report/report.pb.h"
#include "preload/trace/vramtrace.pb.h"

namespace vramtrace::report {

// Fills reason, summary and arithmetic of `device->out_of_memory()`; reads its moment and
// `device->at_refusal()`. `caller`: the library whose driver call was refused; empty when it is not known.
void WordRefusal(const attribution::OutOfMemory& facts, const std::string& caller,
                 const vramtrace::v1::Process& process, v1::DeviceReport* device);

// "step 2, forward, transformer.h.7.mlp (GPT2MLP)"
[[nodiscard]] std::string Place(const v1::Moment& moment);

}  // namespace vramtrace::report
