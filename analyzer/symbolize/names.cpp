#include "analyzer/symbolize/names.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdlib>

namespace vramtrace::symbolize {

std::string Demangle(std::string_view name) {
  int status = -1;
  char* text = abi::__cxa_demangle(std::string(name).c_str(), nullptr, nullptr, &status);
  std::string result = status == 0 ? text : std::string(name);
  std::free(text);
  return result;
}

std::string OperatorName(std::string_view type_name) {
  std::string name = Demangle(type_name);
  const size_t arguments = name.find('<');
  const size_t scope = name.rfind("::", arguments);
  return scope == std::string::npos ? name : name.substr(scope + 2);
}

std::string Printable(std::string_view text) {
  std::string printable;
  printable.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      printable += fmt::format("\\x{:02x}", byte);
    } else {
      printable += c;
    }
  }
  return printable;
}

}  // namespace vramtrace::symbolize
