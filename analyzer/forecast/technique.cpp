#include "analyzer/forecast/technique.h"

namespace vramtrace::forecast {

std::span<const Technique> Techniques() { return {}; }
const Technique* FindTechnique(std::string_view) { return nullptr; }
std::variant<Chosen, std::string> ParseTechnique(std::string_view text) { return std::string(text); }
std::variant<Stream, std::string> ApplyTechniques(const Stream& stream, std::span<const Chosen>) {
  return stream;
}

}  // namespace vramtrace::forecast
