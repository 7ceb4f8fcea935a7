#include "preload/recorder/record/output_path.h"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>

namespace vramtrace::record {
namespace {

class PathBuilder {
 public:
  PathBuilder(char* room, size_t room_bytes) : room_(room), room_bytes_(room_bytes) {}

  void Add(std::string_view text) {
    fits_ = fits_ && text.size() < room_bytes_ - used_;
    if (!fits_) return;
    std::memcpy(room_ + used_, text.data(), text.size());
    used_ += text.size();
    room_[used_] = '\0';
  }
  void Add(char c) { Add(std::string_view(&c, 1)); }
  void AddNumber(uint64_t number) {
    char digits[24];
    Add({digits, static_cast<size_t>(
                     snprintf(digits, sizeof(digits), "%llu", static_cast<unsigned long long>(number)))});
  }
  // UTC, in a form that sorts and that every file system takes: 20261201T093000Z.
  void AddTime(uint64_t unix_ns) {
    // Not gmtime_r: it reads the time zone, with a lock and with malloc.
    const std::chrono::seconds since_epoch(unix_ns / 1'000'000'000U);
    const auto day = std::chrono::floor<std::chrono::days>(std::chrono::sys_seconds(since_epoch));
    const std::chrono::year_month_day date(day);
    const std::chrono::hh_mm_ss clock(std::chrono::sys_seconds(since_epoch) - day);
    char text[64];
    Add({text, static_cast<size_t>(snprintf(
                   text, sizeof(text), "%04d%02u%02uT%02d%02d%02dZ", static_cast<int>(date.year()),
                   static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                   static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                   static_cast<int>(clock.seconds().count())))});
  }

  [[nodiscard]] bool Fits() const { return fits_; }
  [[nodiscard]] bool EndsWith(char c) const { return used_ > 0 && room_[used_ - 1] == c; }
  [[nodiscard]] bool Empty() const { return used_ == 0; }

 private:
  char* room_;
  size_t room_bytes_;
  size_t used_ = 0;
  bool fits_ = true;
};

void AddExpanded(const char* pattern, const OutputNames& names, PathBuilder* path) {
  for (const char* at = pattern; *at != '\0'; ++at) {
    if (*at != '%') {
      path->Add(*at);
      continue;
    }
    switch (at[1]) {
      case 'p':
        path->AddNumber(names.process_id);
        break;
      case 'r':
        path->AddNumber(names.rank);
        break;
      case 'h':
        path->Add(names.host);
        break;
      case 'n':
        path->Add(names.program);
        break;
      case 't':
        path->AddTime(names.start_unix_ns);
        break;
      case '%':
        path->Add('%');
        break;
      default:
        path->Add('%');
        continue;
    }
    ++at;
  }
}

bool IsFolder(const char* path) {
  struct stat status {};
  return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

}  // namespace

bool MakeOutputPath(const char* pattern, const OutputNames& names, char* path, size_t path_bytes) noexcept {
  path[0] = '\0';
  PathBuilder builder(path, path_bytes);
  if (pattern[0] != '/') {
    char folder[4096];
    // A working folder that was deleted has no path: the file's own error will say so.
    if (getcwd(folder, sizeof(folder)) != nullptr) {
      builder.Add(folder);
      if (!builder.EndsWith('/')) builder.Add('/');
    }
  }
  AddExpanded(pattern, names, &builder);
  if (!builder.Fits()) return false;
  if (builder.Empty() || builder.EndsWith('/') || IsFolder(path)) {
    if (!builder.Empty() && !builder.EndsWith('/')) builder.Add('/');
    builder.Add("vramtrace-");
    builder.Add(names.program);
    builder.Add('-');
    builder.AddNumber(names.process_id);
    builder.Add('-');
    builder.AddTime(names.start_unix_ns);
    builder.Add(".vtrace");
  }
  return builder.Fits();
}

bool MakeAlternativePath(const char* path, int number, char* alternative, size_t alternative_bytes) noexcept {
  const std::string_view whole(path);
  size_t dot = whole.rfind('.');
  const size_t name = whole.rfind('/') + 1;
  if (dot == std::string_view::npos || dot <= name) dot = whole.size();
  PathBuilder builder(alternative, alternative_bytes);
  builder.Add(whole.substr(0, dot));
  builder.Add('-');
  builder.AddNumber(static_cast<uint64_t>(number));
  builder.Add(whole.substr(dot));
  return builder.Fits();
}

void MakeParentFolders(const char* path) noexcept {
  char folder[4096];
  const size_t length = std::strlen(path);
  if (length >= sizeof(folder)) return;
  std::memcpy(folder, path, length + 1);
  for (size_t i = 1; i < length; ++i) {
    if (folder[i] != '/') continue;
    folder[i] = '\0';
    [[maybe_unused]] const int made = mkdir(folder, 0777);
    folder[i] = '/';
  }
}

}  // namespace vramtrace::record
