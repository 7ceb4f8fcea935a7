#include "preload/simulator/core/scenario.h"

#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>

#include "preload/simulator/core/log.h"
#include "preload/simulator/core/options.h"

namespace vramtrace::simulator {
namespace {

struct ThrottleReason {
  const char* name;
  uint64_t bit;  // nvml.h, nvmlClocksEventReason*
};
constexpr ThrottleReason kThrottleReasons[] = {
    {"idle", 0x01},        {"applications", 0x02}, {"sw_power", 0x04},
    {"hw_slowdown", 0x08}, {"sync_boost", 0x10},   {"sw_thermal", 0x20},
    {"hw_thermal", 0x40},  {"hw_power", 0x80},     {"display", 0x100},
};

std::string Trim(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

bool Parse(const std::string& text, ScenarioNumber* value) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != '\0' || !(number >= 0)) return false;
  *value = number;
  return true;
}

bool Parse(const std::string& text, ScenarioBytes* value) {
  uint64_t bytes = 0;
  if (!ParseBytes(text.c_str(), &bytes)) return false;
  *value = bytes;
  return true;
}

bool Parse(const std::string& text, ScenarioText* value) {
  *value = text;
  return true;
}

bool SetField(Scenario* scenario, const std::string& key, const std::string& value) {
#define X(field, type, what) \
  if (key == #field) return Parse(value, &scenario->field);
  VRAMTRACE_SIM_SCENARIO(X)
#undef X
  return false;
}

struct File {
  std::map<int, Scenario> cards;  // -1: every card
  timespec changed{};
  off_t bytes = -1;
};

// Sections begin with a copy of what holds for every card, so common lines stand first.
void ReadFile(const char* path, File* file) {
  std::ifstream stream(path);
  if (!stream) Warn("VRAMTRACE_SIM_SCENARIO=%s cannot be read", path);
  file->cards.clear();
  int card = -1;
  std::string line;
  for (int number = 1; std::getline(stream, line); ++number) {
    line = Trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    if (std::sscanf(line.c_str(), "[gpu %d]", &card) == 1) {
      file->cards.emplace(card, file->cards[-1]);
      continue;
    }
    const size_t equals = line.find('=');
    if (equals == std::string::npos ||
        !SetField(&file->cards[card], Trim(line.substr(0, equals)), Trim(line.substr(equals + 1)))) {
      Warn("%s:%d: '%s' is no line of a scenario (preload/simulator/core/scenario.h)", path, number,
           line.c_str());
    }
  }
}

}  // namespace

Scenario ScenarioOf(int physical) {
  const std::string& path = CurrentOptions().scenario;
  if (path.empty()) return {};
  static std::mutex mutex;
  static auto* file = new File;
  const std::lock_guard lock(mutex);
  struct stat status {};
  const bool there = stat(path.c_str(), &status) == 0;
  const bool same = there && status.st_size == file->bytes && status.st_mtim.tv_sec == file->changed.tv_sec &&
                    status.st_mtim.tv_nsec == file->changed.tv_nsec;
  if (!same && (there || file->bytes < 0)) {
    ReadFile(path.c_str(), file);
    file->changed = status.st_mtim;
    file->bytes = there ? status.st_size : 0;
  }
  const auto own = file->cards.find(physical);
  return own != file->cards.end() ? own->second : file->cards[-1];
}

uint64_t ThrottleBits(const Scenario& scenario) {
  uint64_t bits = 0;
  std::string rest = scenario.throttle;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string name = Trim(rest.substr(0, comma));
    for (const ThrottleReason& reason : kThrottleReasons) {
      if (name == reason.name) bits |= reason.bit;
    }
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
  }
  return bits;
}

}  // namespace vramtrace::simulator
