#pragma once
// Names for people out of names for machines.

#include <string>
#include <string_view>

namespace vramtrace::symbolize {

// A C++ name, demangled; the name itself where it is none.
[[nodiscard]] std::string Demangle(std::string_view name);

// An autograd node's type name without its namespaces: "N5torch8autograd9generated15AddmmBackward0E" is
// "AddmmBackward0".
[[nodiscard]] std::string OperatorName(std::string_view type_name);

// Control characters (a terminal would obey them) as \xNN; everything else as it is. What comes from a trace
// is printed through this.
[[nodiscard]] std::string Printable(std::string_view text);

}  // namespace vramtrace::symbolize
