#include "analyzer/cli/launch/traces.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <ctime>

namespace vramtrace::launch {
namespace fs = std::filesystem;
namespace {

constexpr size_t kLongestProgramName = 64;

bool IsPython(const std::string& name) {
  if (!name.starts_with("python") && !name.starts_with("pypy")) return false;
  return std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '.'; });
}

std::string Sanitize(std::string_view text) {
  std::string name;
  for (const char c : text.substr(0, kLongestProgramName)) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
    name += plain ? c : '_';
  }
  while (name.starts_with('.') || name.starts_with('-')) name.erase(0, 1);
  return name.empty() ? "program" : name;
}

// The script or module of a Python command line; empty for -c and for the interactive shell.
std::string PythonProgram(std::span<const std::string> arguments) {
  for (size_t at = 1; at < arguments.size(); ++at) {
    const std::string& word = arguments[at];
    if (word == "-m") return at + 1 < arguments.size() ? arguments[at + 1] : "";
    if (word == "-c" || word == "-") return "";
    if (word == "-W" || word == "-X") {
      ++at;
    } else if (!word.starts_with('-')) {
      return fs::path(word).stem().string();
    }
  }
  return "";
}

bool IsDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// `pattern` against `name`, as the recorder expands VRAMTRACE_OUTPUT: %p and %r stand for digits, %% for a
// percent, %h, %n and %t for any text, everything else for itself.
bool MatchPattern(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (pattern.starts_with('%') && pattern.size() > 1 && pattern[1] != '%') {
    const bool number = pattern[1] == 'p' || pattern[1] == 'r';
    for (size_t taken = name.size(); taken > 0; --taken) {
      if (number && !IsDigits(name.substr(0, taken))) continue;
      if (MatchPattern(pattern.substr(2), name.substr(taken))) return true;
    }
    return false;
  }
  if (name.empty() || name.front() != pattern.front()) return false;
  return MatchPattern(pattern.substr(pattern.starts_with("%%") ? 2 : 1), name.substr(1));
}

std::string EscapePercent(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '%') escaped += '%';
    escaped += c;
  }
  return escaped;
}

}  // namespace

std::string ProgramName(std::span<const std::string> command) {
  if (command.empty()) return "program";
  const std::string file = fs::path(command[0]).filename().string();
  if (IsPython(file)) {
    const std::string script = PythonProgram(command);
    if (!script.empty()) return Sanitize(script);
  }
  return Sanitize(file);
}

TraceOutput::TraceOutput(std::string_view asked, std::string_view program,
                         std::chrono::system_clock::time_point start) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(start);
  const auto milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(start.time_since_epoch()).count() % 1000;
  const std::string when = fmt::format("{:%Y%m%dT%H%M%S}.{:03}Z", fmt::gmtime(seconds), milliseconds);
  const std::string usual = fmt::format("vramtrace-%n-%p-{}.vtrace", when);

  const fs::path path{std::string(asked)};
  std::error_code error;
  if (asked.empty()) {
    name_ = usual;
    run_ = fmt::format("vramtrace-{}-{}", program, when);
    folder_ = fs::current_path(error);
  } else if (asked.ends_with('/') || fs::is_directory(path, error)) {
    name_ = usual;
    folder_ = fs::absolute(path, error);
  } else {
    name_ = path.filename().string();
    folder_ = fs::absolute(path, error).parent_path();
  }
  folder_ = fs::weakly_canonical(folder_, error);
  if (!folder_.has_filename()) folder_ = folder_.parent_path();  // the slash that said "a folder"
}

std::string TraceOutput::Pattern(const fs::path& folder) const {
  return EscapePercent(folder.string()) + "/" + name_;
}

std::string TraceOutput::Prepare() {
  std::error_code error;
  made_folder_ = fs::create_directories(folder_, error);
  if (error) return fmt::format("{}: cannot make this folder: {}", folder_.string(), error.message());
  if (access(folder_.c_str(), W_OK | X_OK) != 0) {
    return fmt::format("{}: cannot write here: {}; choose another place with -o", folder_.string(),
                       std::strerror(errno));
  }
  for (fs::directory_iterator each(folder_, error), end; !error && each != end; each.increment(error)) {
    if (Matches(each->path().filename().string())) before_.emplace(each->path(), Look(each->path()));
  }
  return "";
}

void TraceOutput::RemoveEmptyFolder() const {
  std::error_code error;
  if (made_folder_) fs::remove(folder_, error);  // fails, as it should, when something is in it
}

TraceOutput::Known TraceOutput::Look(const fs::path& file) {
  std::error_code error;
  struct stat status = {};
  (void)stat(file.c_str(), &status);
  return {.inode = status.st_ino,
          .bytes = static_cast<uint64_t>(status.st_size),
          .changed = fs::last_write_time(file, error)};
}

bool TraceOutput::Matches(const std::string& name) const {
  if (MatchPattern(name_, name)) return true;
  // The recorder never overwrites: a name that is taken gets -1, -2, ... before its ending.
  const fs::path pattern(name_);
  const std::string numbered = pattern.stem().string() + "-%p" + pattern.extension().string();
  return MatchPattern(numbered, name);
}

std::vector<Trace> TraceOutput::Find() const {
  std::vector<Trace> traces;
  std::error_code error;
  for (fs::directory_iterator each(folder_, error), end; !error && each != end; each.increment(error)) {
    std::error_code ignored;
    if (!Matches(each->path().filename().string()) || !each->is_regular_file(ignored)) continue;
    const Known now = Look(each->path());
    const auto known = before_.find(each->path());
    if (known != before_.end() && known->second == now) continue;
    traces.push_back({.file = each->path(), .bytes = now.bytes});
  }
  std::sort(traces.begin(), traces.end(), [](const Trace& a, const Trace& b) { return a.file < b.file; });
  return traces;
}

fs::path TraceOutput::Gather(std::vector<Trace>* traces) const {
  if (run_.empty() || traces->size() < 2) return folder_;
  fs::path run = folder_ / run_;
  std::error_code error;
  fs::create_directory(run, error);
  if (error) return folder_;
  for (Trace& trace : *traces) {
    const fs::path inside = run / trace.file.filename();
    fs::rename(trace.file, inside, error);
    if (!error) trace.file = inside;
  }
  return run;
}

}  // namespace vramtrace::launch
