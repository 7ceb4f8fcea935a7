#pragma once
// Where the trace goes: VRAMTRACE_OUTPUT, its placeholders and its default.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace vramtrace::record {

struct OutputNames {
  std::string_view program;
  uint32_t process_id = 0;
  uint32_t rank = 0;
  std::string_view host;
  uint64_t start_unix_ns = 0;
};

// An absolute path in `path`. `pattern` is VRAMTRACE_OUTPUT: %p process id, %r rank, %h host, %n program, %t
// start,
// %% a percent, anything else as it stands. Empty, an existing folder, or something that ends in '/':
// vramtrace-<program>-<pid>-<start>.vtrace in there. False when it is too long.
[[nodiscard]] bool MakeOutputPath(const char* pattern, const OutputNames& names, char* path,
                                  size_t path_bytes) noexcept;

// The same path with "-<number>" in front of its ending: for a name that is taken. False when it is too long.
[[nodiscard]] bool MakeAlternativePath(const char* path, int number, char* alternative,
                                       size_t alternative_bytes) noexcept;

// Makes the folders that `path` lies in, as far as they are missing. The errors come when the file is
// created.
void MakeParentFolders(const char* path) noexcept;

}  // namespace vramtrace::record
