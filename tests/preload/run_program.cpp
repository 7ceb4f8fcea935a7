#include "tests/preload/run_program.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <iterator>

namespace vramtrace::tests {

Ended RunProgram(const std::vector<std::string>& command, const Environment& environment) {
  std::vector<std::string> settings;
  for (char** entry = environ; *entry != nullptr; ++entry) settings.emplace_back(*entry);
  for (const auto& entry : environment) {
    const std::string assignment = entry.first + "=";
    std::erase_if(settings, [&](const std::string& setting) { return setting.starts_with(assignment); });
    settings.push_back(assignment + entry.second);
  }
  std::vector<char*> envp;
  envp.reserve(settings.size() + 1);
  for (std::string& setting : settings) envp.push_back(setting.data());
  envp.push_back(nullptr);
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  Ended ended;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ended;
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    execve(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  close(ends[1]);
  std::array<char, 4096> buffer{};
  for (ssize_t count = 0; (count = read(ends[0], buffer.data(), buffer.size())) > 0;) {
    ended.text.append(buffer.data(), static_cast<size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ended;
}

ScratchFolder::ScratchFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "vramtrace-test-XXXXXX").string();
  path_ = mkdtemp(pattern.data());
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

size_t ScratchFolder::CountFiles() const {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
}

Environment Preloaded(const std::string& trace) {
  return {{"LD_PRELOAD", VRAMTRACE_LIBRARY}, {"VRAMTRACE_OUTPUT", trace}};
}

}  // namespace vramtrace::tests
