#pragma once
// The files of data/, compiled in by embed.cmake.

#include <string_view>

namespace vramtrace::catalogue::data {

extern const std::string_view kGpus;
extern const std::string_view kSpecs;
extern const std::string_view kLimits;
extern const std::string_view kExactTotals;
extern const std::string_view kAliases;
extern const std::string_view kContexts;
extern const std::string_view kMig;
extern const std::string_view kPrices;

}  // namespace vramtrace::catalogue::data
