#include "preload/simulator/core/options.h"

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "preload/simulator/core/log.h"

namespace vramtrace::simulator {
namespace {

struct Unit {
  const char* name;
  uint64_t bytes;
};
constexpr Unit kUnits[] = {
    {"", 1},           {"b", 1},          {"kib", 1u << 10},
    {"mib", 1u << 20}, {"gib", 1u << 30}, {"tib", 1ull << 40},
    {"kb", 1000},      {"mb", 1000000},   {"gb", 1000000000},
};

bool Parse(const char* text, OptionText* value) {
  *value = text;
  return true;
}

bool Parse(const char* text, OptionCount* value) {
  char* end = nullptr;
  long number = std::strtol(text, &end, 10);
  if (end == text || *end != '\0' || number < 0 || number > 64) return false;
  *value = static_cast<int>(number);
  return true;
}

bool Parse(const char* text, OptionBytes* value) { return ParseBytes(text, value); }

bool Parse(const char* text, OptionFlag* value) {
  *value = text[0] != '\0' && std::strcmp(text, "0") != 0;
  return true;
}

template <class T>
void Read(const char* variable, T* value) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return;
  if (!Parse(text, value)) Warn("%s=%s is not understood and ignored", variable, text);
}

Options* ReadAll() {
  auto* options = new Options;
#define X(field, variable, type, default_value, what) Read(variable, &options->field);
  VRAMTRACE_SIM_OPTIONS(X)
#undef X
  return options;
}

}  // namespace

bool ParseBytes(const char* text, uint64_t* bytes) {
  if (!std::isdigit(static_cast<unsigned char>(text[0]))) return false;
  char* end = nullptr;
  errno = 0;
  uint64_t number = std::strtoull(text, &end, 10);
  while (*end == ' ') ++end;
  for (const Unit& unit : kUnits) {
    if (strcasecmp(end, unit.name) != 0) continue;
    return errno == 0 && !__builtin_mul_overflow(number, unit.bytes, bytes);
  }
  return false;
}

const Options& CurrentOptions() {
  static const Options* options = ReadAll();
  return *options;
}

}  // namespace vramtrace::simulator
