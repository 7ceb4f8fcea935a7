// python_layouts: the rows of python_layout.h, one JSON object a line, to be compared with CPython's own
// headers.

#include <cstdio>

#include "preload/recorder/stacks/python_layout.h"

int main() {
  for (const auto& row : vramtrace::stacks::kPythonLayouts) {
    std::printf(
        "{\"minor\":%d,\"thread_to_frame\":%d,\"cframe_to_frame\":%d,\"previous\":%d,\"code\":%d,"
        "\"instruction\":%d,"
        "\"locals\":%d,\"owner\":%d,\"code_filename\":%d,\"code_name\":%d,\"code_qualified_name\":%d,"
        "\"code_first_line\":%d,\"code_line_table\":%d,\"code_start\":%d,\"string_ascii_data\":%d,"
        "\"string_compact_data\":%d}\n",
        row.minor, row.thread_to_frame, row.cframe_to_frame, row.previous, row.code, row.instruction,
        row.locals, row.owner, row.code_filename, row.code_name, row.code_qualified_name, row.code_first_line,
        row.code_line_table, row.code_start, row.string_ascii_data, row.string_compact_data);
  }
}
