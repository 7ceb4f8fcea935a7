#include "preload/recorder/record/process_facts.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "preload/recorder/record/mask.h"

namespace vramtrace::record {
namespace {

constexpr const char* kRank[] = {"RANK", "LOCAL_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK"};
constexpr const char* kLocalRank[] = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"};
constexpr const char* kWorldSize[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS", "PMI_SIZE"};
constexpr std::string_view kKeptVariables[] = {
    "RANK=",         "LOCAL_RANK=",           "WORLD_SIZE=",
    "GROUP_RANK=",   "LOCAL_WORLD_SIZE=",     "OMPI_COMM_WORLD_RANK=",
    "SLURM_PROCID=", "OMPI_COMM_WORLD_SIZE=", "OMPI_COMM_WORLD_LOCAL_RANK=",
    "PMI_RANK=",     "SLURM_LOCALID=",        "SLURM_NTASKS=",
    "PMI_SIZE=",
};
constexpr std::string_view kKeptPrefixes[] = {"CUDA_", "PYTORCH_", "NCCL_"};

template <size_t n>
uint32_t FirstNumber(const char* const (&names)[n]) {
  for (const char* name : names) {
    const char* const text = std::getenv(name);
    if (text == nullptr || *text == '\0') continue;
    char* end = nullptr;
    const unsigned long value = std::strtoul(text, &end, 10);
    if (*end == '\0' && value <= UINT32_MAX) return static_cast<uint32_t>(value);
  }
  return 0;
}

size_t ReadFile(const char* path, char* room, size_t room_bytes) {
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return 0;
  size_t used = 0;
  while (used < room_bytes) {
    const ssize_t got = read(descriptor, room + used, room_bytes - used);
    if (got <= 0) break;
    used += static_cast<size_t>(got);
  }
  close(descriptor);
  return used;
}

uint64_t ClockNs(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<uint64_t>(now.tv_nsec);
}

bool IsKept(std::string_view variable) {
  // Set by this library, not by the user.
  if (variable.starts_with("CUDA_INJECTION64_PATH=") && variable.ends_with("/libvramtrace.so")) return false;
  const auto begins = [variable](std::string_view prefix) { return variable.starts_with(prefix); };
  return std::any_of(std::begin(kKeptPrefixes), std::end(kKeptPrefixes), begins) ||
         std::any_of(std::begin(kKeptVariables), std::end(kKeptVariables), begins);
}

}  // namespace

uint32_t RankFromEnvironment() noexcept { return FirstNumber(kRank); }

std::string_view ProcessSnapshot::Keep(std::string_view text) noexcept {
  const size_t kept = std::min({text.size(), kTextBytes - text_used_, size_t{4096}});
  std::memcpy(text_ + text_used_, text.data(), kept);
  const std::string_view result(text_ + text_used_, kept);
  text_used_ += kept;
  return result;
}

void ProcessSnapshot::ReadArguments() noexcept {
  raw_arguments_bytes_ = ReadFile("/proc/self/cmdline", raw_arguments_, sizeof(raw_arguments_));
  std::string_view rest(raw_arguments_, raw_arguments_bytes_);
  ArgumentMask mask;
  size_t count = 0;
  while (!rest.empty() && count < kMaxValues) {
    const size_t end = std::min(rest.find('\0'), rest.size());
    char room[512];
    arguments_[count++] = Keep(mask.Apply(rest.substr(0, end), room, sizeof(room)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  packet_.argument = {arguments_, count};
}

void ProcessSnapshot::ReadEnvironment() noexcept {
  size_t count = 0;
  for (char** variable = environ; variable != nullptr && *variable != nullptr && count < kMaxValues;
       ++variable) {
    if (!IsKept(*variable)) continue;
    char room[512];
    environment_[count++] = Keep(MaskVariable(*variable, room, sizeof(room)));
  }
  packet_.environment = {environment_, count};
}

void ProcessSnapshot::ReadStart() noexcept {
  const uint64_t monotonic = ClockNs(CLOCK_MONOTONIC);
  const uint64_t boot = ClockNs(CLOCK_BOOTTIME);
  const uint64_t real = ClockNs(CLOCK_REALTIME);
  uint64_t age = 0;
  // proc(5): field 22, starttime, in clock ticks after boot; fields count from behind the name's parenthesis.
  char stat[1024];
  const size_t size = ReadFile("/proc/self/stat", stat, sizeof(stat) - 1);
  stat[size] = '\0';
  const char* field = std::strrchr(stat, ')');
  for (int i = 2; field != nullptr && i < 22; ++i) field = std::strchr(field + 1, ' ');
  if (field != nullptr) {
    const auto ticks_a_second = static_cast<uint64_t>(std::max(1L, sysconf(_SC_CLK_TCK)));
    const uint64_t started = std::strtoull(field, nullptr, 10) * (1'000'000'000U / ticks_a_second);
    if (started < boot) age = std::min(boot - started, monotonic);
  }
  packet_.start_monotonic_ns = monotonic - age;
  packet_.start_unix_ns = real - age;
}

void ProcessSnapshot::FindProgram() noexcept {
  const auto base = [](std::string_view path) { return path.substr(path.rfind('/') + 1); };
  std::string_view program = base(packet_.executable);
  if (program.starts_with("python")) {
    // The first argument that is no option: train.py, or the module behind -m.
    for (size_t i = 1; i < packet_.argument.size(); ++i) {
      const std::string_view argument = packet_.argument[i];
      if (argument == "-m") continue;
      if (argument == "-c" || argument.empty()) break;
      if (argument.starts_with("-")) {
        if (argument == "-X" || argument == "-W") ++i;
        continue;
      }
      program = base(argument);
      if (program.ends_with(".py")) program.remove_suffix(3);
      break;
    }
  }
  if (program.empty()) program = "program";
  constexpr size_t kLongest = 48;
  char* const clean = text_ + text_used_;
  program_ = Keep(program.substr(0, kLongest));
  for (size_t i = 0; i < program_.size(); ++i) {
    const char c = clean[i];
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '_' || c == '-';
    if (!plain || (i == 0 && c == '.')) clean[i] = '_';
  }
}

void ProcessSnapshot::Take() noexcept {
  text_used_ = 0;
  packet_ = {};
  packet_.pid = static_cast<uint32_t>(getpid());
  packet_.parent_pid = static_cast<uint32_t>(getppid());
  packet_.rank = RankFromEnvironment();
  packet_.local_rank = FirstNumber(kLocalRank);
  packet_.world_size = FirstNumber(kWorldSize);
  ReadStart();
  char room[4096];
  if (gethostname(room, sizeof(room)) == 0) {
    room[sizeof(room) - 1] = '\0';
    packet_.host = Keep(room);
  }
  const ssize_t length = readlink("/proc/self/exe", room, sizeof(room));
  if (length > 0) packet_.executable = Keep({room, static_cast<size_t>(length)});
  if (getcwd(room, sizeof(room)) != nullptr) packet_.working_folder = Keep(room);
  packet_.writer_version = VRAMTRACE_VERSION;
  ReadArguments();
  FindProgram();
  ReadEnvironment();
}

}  // namespace vramtrace::record
