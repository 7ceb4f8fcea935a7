#include "preload/recorder/record/options.h"

#include <strings.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "preload/recorder/record/message.h"

namespace vramtrace::record {
namespace {

bool Parse(const char* text, const char** path) {
  *path = text;
  return true;
}

bool Parse(const char* text, uint64_t* bytes) { return ParseBytes(text, bytes); }

bool Parse(const char* text, bool* flag) {
  for (const char* yes : {"1", "true", "yes", "on"}) {
    if (strcasecmp(text, yes) == 0) {
      *flag = true;
      return true;
    }
  }
  for (const char* no : {"0", "false", "no", "off"}) {
    if (strcasecmp(text, no) == 0) {
      *flag = false;
      return true;
    }
  }
  return false;
}

bool Parse(const char* text, WriteChoice* choice) {
  constexpr std::pair<const char*, WriteChoice> kNames[] = {
      {"auto", WriteChoice::kAutomatic}, {"mapped", WriteChoice::kMapped}, {"plain", WriteChoice::kPlain}};
  for (const auto& [name, value] : kNames) {
    if (strcasecmp(text, name) == 0) {
      *choice = value;
      return true;
    }
  }
  return false;
}

const char* GetEnvironment(const char* name) { return std::getenv(name); }

}  // namespace

bool ParseBytes(const char* text, uint64_t* bytes) noexcept {
  char* end = nullptr;
  const double number = std::strtod(text, &end);
  if (end == text || !(number >= 0)) return false;
  while (*end == ' ') ++end;
  constexpr const char* kUnits = "kmgt";
  double scale = 1;
  if (*end != '\0' && *end != 'b' && *end != 'B') {
    const char lower = static_cast<char>(*end | 0x20);
    const char* const unit = std::strchr(kUnits, lower);
    if (unit == nullptr) return false;
    for (const char* step = kUnits; step <= unit; ++step) scale *= 1024;
    ++end;
    if (*end == 'i') ++end;
  }
  if (*end == 'b' || *end == 'B') ++end;
  if (*end != '\0' || number * scale >= 9e18) return false;
  *bytes = static_cast<uint64_t>(number * scale);
  return true;
}

Options ReadOptions(const char* (*get)(const char* name)) noexcept {
  Options options;
  const auto read = [get](const char* variable, const char* fallback, auto* field) {
    [[maybe_unused]] const bool default_parses = Parse(fallback, field);
    const char* const text = get(variable);
    if (text == nullptr || *text == '\0' || Parse(text, field)) return;
    Say("%s=%s makes no sense; using %s", variable, text, fallback);
  };
#define VRAMTRACE_READ_OPTION(field, type, variable, text, help) read(variable, text, &options.field);
  VRAMTRACE_RECORD_OPTIONS(VRAMTRACE_READ_OPTION)
#undef VRAMTRACE_READ_OPTION
  constexpr uint64_t kSmallest = 64 * 1024;
  constexpr uint64_t kChunksOfALimit = 256;
  constexpr uint64_t kLargest = 16 * 1024 * 1024;
  // Whole pages of any page size that Linux has on x86-64 and arm64 (up to 64 KiB).
  options.chunk_size = std::clamp(options.chunk_size / kSmallest * kSmallest, kSmallest, kLargest);
  // A file of a few chunks leaves nothing to choose what to keep from.
  if (options.max_size != 0) {
    options.chunk_size =
        std::clamp(options.max_size / kChunksOfALimit / kSmallest * kSmallest, kSmallest, options.chunk_size);
  }
  return options;
}

const Options& GetOptions() noexcept {
  static const Options options = ReadOptions(GetEnvironment);
  return options;
}

void PrintOptions() noexcept {
#define VRAMTRACE_PRINT_OPTION(field, type, variable, text, help)                        \
  {                                                                                      \
    const char* const value = std::getenv(variable);                                     \
    Say("%s=%s  %s", variable, value != nullptr && *value != '\0' ? value : text, help); \
  }
  VRAMTRACE_RECORD_OPTIONS(VRAMTRACE_PRINT_OPTION)
#undef VRAMTRACE_PRINT_OPTION
}

}  // namespace vramtrace::record
