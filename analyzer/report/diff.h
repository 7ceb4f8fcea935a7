#pragma once
// Two reports compared: what grew, what is new, and what about the runs explains it.

#include <string>

#include "analyzer/report/report.pb.h"
#include "analyzer/timeline/instants.h"

namespace vramtrace::report {

// Both reports must list every live allocation (BuildOptions::allocations 0). The device with the highest
// peak of each is compared.
[[nodiscard]] v1::Diff MakeDiff(const v1::Report& a, const v1::Report& b);

void FillTraffic(const timeline::Traffic& traffic, v1::Traffic* out);

// A module path with its numbers as "*", so that the layers of a stack are one: "h.3.mlp" is "h.*.mlp".
[[nodiscard]] std::string FoldPath(const std::string& path);

struct DiffTextOptions {
  bool color = false;
  size_t rows = 10;  // of each table
};
[[nodiscard]] std::string DiffText(const v1::Diff& diff, const DiffTextOptions& options);

}  // namespace vramtrace::report
