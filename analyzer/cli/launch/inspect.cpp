#include "analyzer/cli/launch/inspect.h"

#include <elf.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>

namespace vramtrace::launch {
namespace fs = std::filesystem;
namespace {

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#else
#error "add the EM_ value of this architecture"
#endif

bool IsExecutableFile(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

// The dynamic loader that a program asks for; empty for a static one.
std::string InterpreterOf(std::ifstream& file, const Elf64_Ehdr& header) {
  for (unsigned at = 0; at < header.e_phnum; ++at) {
    Elf64_Phdr segment = {};
    file.seekg(static_cast<std::streamoff>(header.e_phoff + uint64_t{at} * sizeof(segment)));
    if (!file.read(reinterpret_cast<char*>(&segment), sizeof(segment))) return "";
    if (segment.p_type != PT_INTERP) continue;
    std::string interpreter(std::min<uint64_t>(segment.p_filesz, 4096), '\0');
    file.seekg(static_cast<std::streamoff>(segment.p_offset));
    if (!file.read(interpreter.data(), static_cast<std::streamsize>(interpreter.size()))) return "";
    return interpreter.c_str();
  }
  return "";
}

}  // namespace

std::optional<fs::path> FindCommand(const std::string& command, std::string_view search_path) {
  if (command.find('/') != std::string::npos) {
    if (IsExecutableFile(command)) return command;
    return std::nullopt;
  }
  while (true) {
    const size_t end = std::min(search_path.find(':'), search_path.size());
    const fs::path candidate = fs::path(end == 0 ? "." : search_path.substr(0, end)) / command;
    if (IsExecutableFile(candidate)) return candidate;
    if (end == search_path.size()) return std::nullopt;
    search_path.remove_prefix(end + 1);
  }
}

std::string WhyNotPreloadable(const fs::path& program) {
  struct stat status = {};
  if (stat(program.c_str(), &status) == 0) {
    const bool other_user = (status.st_mode & S_ISUID) != 0 && status.st_uid != getuid();
    const bool other_group = (status.st_mode & S_ISGID) != 0 && status.st_gid != getgid();
    if (other_user || other_group) {
      return fmt::format("{} runs with another user's rights (setuid), so the loader ignores LD_PRELOAD",
                         program.string());
    }
  }
  std::ifstream file(program, std::ios::binary);
  Elf64_Ehdr header = {};
  if (!file.read(reinterpret_cast<char*>(&header), sizeof(header)) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return "";
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachine) {
    return fmt::format("{} is for another architecture than libvramtrace.so", program.string());
  }
  const std::string interpreter = InterpreterOf(file, header);
  if (interpreter.empty()) {
    return fmt::format("{} is statically linked, so there is no loader that could preload anything",
                       program.string());
  }
  if (interpreter.find("ld-musl") != std::string::npos) {
    return fmt::format("{} uses musl, and libvramtrace.so needs the GNU C library", program.string());
  }
  return "";
}

}  // namespace vramtrace::launch
