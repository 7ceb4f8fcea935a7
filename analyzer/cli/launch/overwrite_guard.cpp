#include "analyzer/cli/launch/overwrite_guard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "analyzer/cli/launch/paths.h"

namespace vramtrace::launch {
namespace fs = std::filesystem;
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "add the AUDIT_ARCH_ value of this architecture"
#endif

// How a system call names the files that it changes.
enum class Shape { kOpen, kOpenHow, kChange, kRename };

struct Watched {
  int number;
  Shape shape;
  int folder;  // argument with the directory descriptor, -1: relative to the working folder
  int path;
  int flags;  // argument with open flags; only calls that may write are asked about; -1: always
  int second_folder = -1;
  int second_path = -1;
  bool follows = false;  // a symbolic link at the end means its target
  const char* deed = "";
};

constexpr Watched kWatched[] = {
    {.number = SYS_openat, .shape = Shape::kOpen, .folder = 0, .path = 1, .flags = 2, .follows = true},
    {.number = SYS_openat2, .shape = Shape::kOpenHow, .folder = 0, .path = 1, .flags = -1, .follows = true},
    {.number = SYS_truncate,
     .shape = Shape::kChange,
     .folder = -1,
     .path = 0,
     .flags = -1,
     .follows = true,
     .deed = "truncate"},
    {.number = SYS_unlinkat, .shape = Shape::kChange, .folder = 0, .path = 1, .flags = -1, .deed = "remove"},
    {.number = SYS_renameat2,
     .shape = Shape::kRename,
     .folder = 0,
     .path = 1,
     .flags = -1,
     .second_folder = 2,
     .second_path = 3},
#ifdef SYS_renameat
    {.number = SYS_renameat,
     .shape = Shape::kRename,
     .folder = 0,
     .path = 1,
     .flags = -1,
     .second_folder = 2,
     .second_path = 3},
#endif
#ifdef SYS_open
    {.number = SYS_open, .shape = Shape::kOpen, .folder = -1, .path = 0, .flags = 1, .follows = true},
    {.number = SYS_creat, .shape = Shape::kOpen, .folder = -1, .path = 0, .flags = -1, .follows = true},
    {.number = SYS_unlink, .shape = Shape::kChange, .folder = -1, .path = 0, .flags = -1, .deed = "remove"},
    {.number = SYS_rename,
     .shape = Shape::kRename,
     .folder = -1,
     .path = 0,
     .flags = -1,
     .second_folder = -1,
     .second_path = 1},
#endif
};

constexpr uint32_t kWritingFlags = O_WRONLY | O_RDWR | O_TRUNC;

// The lower half of an argument: both architectures are little-endian.
constexpr uint32_t ArgumentOffset(int argument) {
  return static_cast<uint32_t>(offsetof(seccomp_data, args) + static_cast<size_t>(argument) * 8);
}

// allow unless (architecture is ours and the call is watched and, for opens, may write).
std::vector<sock_filter> MakeFilter() {
  std::vector<sock_filter> filter = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
  };
  for (const Watched& call : kWatched) {
    const auto number = static_cast<uint32_t>(call.number);
    if (call.flags < 0) {
      filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
      filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF));
    } else {
      filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4));
      filter.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ArgumentOffset(call.flags)));
      filter.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kWritingFlags, 0, 1));
      filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF));
      filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    }
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  return filter;
}

bool Earlier(const timespec& a, const timespec& b) {
  return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

timespec ToTimespec(const struct statx_timestamp& time) {
  return {.tv_sec = static_cast<time_t>(time.tv_sec), .tv_nsec = static_cast<long>(time.tv_nsec)};
}

// When a file was made, or where the file system does not say, when it was last changed.
timespec MadeAt(const struct statx& status) {
  return ToTimespec((status.stx_mask & STATX_BTIME) != 0 ? status.stx_btime : status.stx_ctime);
}

// The clock of the folder's file system, which on a network is the server's: the time of a nameless file
// made now. Where none can be made, the kernel's coarse clock, which file systems use.
timespec ClockOf(const fs::path& folder) {
  const int file = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0) {
    struct statx status = {};
    const bool known = statx(file, "", AT_EMPTY_PATH, STATX_BTIME | STATX_CTIME, &status) == 0;
    close(file);
    if (known) return MadeAt(status);
  }
  timespec now = {};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return now;
}

// A null-terminated path out of the asker's memory, page by page so that a short string at a mapping's end is
// still read.
std::optional<std::string> ReadPath(pid_t process, uint64_t address) {
  constexpr size_t kPage = 4096;
  std::string text;
  std::array<char, kPage> buffer;
  while (text.size() < PATH_MAX) {
    const size_t wanted = kPage - (address + text.size()) % kPage;
    iovec local{buffer.data(), wanted};
    iovec remote{reinterpret_cast<void*>(address + text.size()), wanted};
    const ssize_t got = process_vm_readv(process, &local, 1, &remote, 1, 0);
    if (got <= 0) return std::nullopt;
    const void* end = memchr(buffer.data(), 0, static_cast<size_t>(got));
    if (end != nullptr)
      return text.append(static_cast<const char*>(buffer.data()), static_cast<const char*>(end));
    text.append(buffer.data(), static_cast<size_t>(got));
  }
  return text;
}

// Absolute, every link resolved but the last part's unless `follow`.
std::optional<fs::path> Resolve(pid_t process, int folder, const std::string& text, bool follow) {
  std::error_code error;
  fs::path path(text);
  if (path.is_absolute()) {
    if (text.starts_with("/dev/") || text.starts_with("/proc/")) return std::nullopt;
  } else {
    const std::string link = folder == AT_FDCWD ? fmt::format("/proc/{}/cwd", process)
                                                : fmt::format("/proc/{}/fd/{}", process, folder);
    const fs::path base = fs::read_symlink(link, error);
    if (error) return std::nullopt;
    path = text.empty() ? base : base / path;
  }
  if (follow) return fs::weakly_canonical(path, error);
  if (!path.has_filename()) path = path.parent_path();
  return fs::weakly_canonical(path.parent_path(), error) / path.filename();
}

}  // namespace

OverwriteGuard::OverwriteGuard(const std::vector<fs::path>& folders) {
  for (const fs::path& folder : folders) {
    std::error_code error;
    fs::path path = fs::weakly_canonical(folder, error);
    folders_.push_back({.path = path, .start = ClockOf(path)});
  }
}

int OverwriteGuard::Install() {
  std::vector<sock_filter> filter = MakeFilter();
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  // SPEC_ALLOW: without it the kernel slows the whole program down with mitigations meant for sandboxes.
  const long descriptor =
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
              SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program);
  return static_cast<int>(descriptor);
}

bool OverwriteGuard::Available() {
  seccomp_notif_sizes sizes = {};
  if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) != 0) return false;
  if (sizes.seccomp_notif > 512 || sizes.seccomp_notif_resp > 512) return false;
  const pid_t child = fork();
  if (child == 0) _exit(Install() >= 0 ? 0 : 1);
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

bool OverwriteGuard::IsProtected(const fs::path& path) const {
  const auto folder = std::find_if(folders_.begin(), folders_.end(),
                                   [&](const Folder& each) { return IsInside(path, each.path); });
  if (folder == folders_.end()) return false;
  if (std::find(path.begin(), path.end(), "__pycache__") != path.end()) return false;
  struct statx status = {};
  const int found = statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW,
                          STATX_TYPE | STATX_SIZE | STATX_BTIME | STATX_CTIME, &status);
  if (found != 0) return false;
  const bool keeps_something = (S_ISREG(status.stx_mode) && status.stx_size > 0) ||
                               S_ISLNK(status.stx_mode) || S_ISDIR(status.stx_mode);
  return keeps_something && Earlier(MadeAt(status), folder->start);
}

std::optional<Overwrite> OverwriteGuard::Judge(const seccomp_notif& question) const {
  const auto call = std::find_if(std::begin(kWatched), std::end(kWatched),
                                 [&](const Watched& each) { return each.number == question.data.nr; });
  if (call == std::end(kWatched)) return std::nullopt;
  const auto process = static_cast<pid_t>(question.pid);
  const auto& arguments = question.data.args;

  if (call->shape == Shape::kOpenHow) {
    open_how how = {};
    iovec local{&how, sizeof(how)};
    iovec remote{reinterpret_cast<void*>(arguments[2]), sizeof(how)};
    const ssize_t got = process_vm_readv(process, &local, 1, &remote, 1, 0);
    if (got == static_cast<ssize_t>(sizeof(how)) && (how.flags & kWritingFlags) == 0) return std::nullopt;
  }

  const auto protected_path = [&](int folder_argument, int path_argument) -> std::optional<fs::path> {
    const auto text = ReadPath(process, arguments[path_argument]);
    if (!text) return std::nullopt;  // a bad pointer: the call itself will fail
    const int folder = folder_argument < 0 ? AT_FDCWD : static_cast<int>(arguments[folder_argument]);
    auto path = Resolve(process, folder, *text, call->follows);
    if (!path || !IsProtected(*path)) return std::nullopt;
    return path;
  };
  const auto is_folder = [](const fs::path& path) {
    std::error_code error;
    return fs::is_directory(fs::symlink_status(path, error));
  };

  auto path = protected_path(call->folder, call->path);
  switch (call->shape) {
    case Shape::kOpen:
    case Shape::kOpenHow:
      // Opening a directory for writing fails by itself.
      if (!path || is_folder(*path)) return std::nullopt;
      return Overwrite{
          .process = process, .file = *path, .deed = fmt::format("open {} for writing", path->string())};
    case Shape::kChange:
      if (!path || is_folder(*path)) return std::nullopt;  // only an empty directory can be removed
      return Overwrite{
          .process = process, .file = *path, .deed = fmt::format("{} {}", call->deed, path->string())};
    case Shape::kRename:
      if (path)
        return Overwrite{.process = process, .file = *path, .deed = fmt::format("rename {}", path->string())};
      path = protected_path(call->second_folder, call->second_path);
      if (!path || is_folder(*path)) return std::nullopt;
      return Overwrite{.process = process, .file = *path, .deed = fmt::format("replace {}", path->string())};
  }
  return std::nullopt;
}

void OverwriteGuard::Answer(int descriptor, const std::function<void(const Overwrite&)>& refused) const {
  // The kernel may know longer structures than these headers; Available() bounds them.
  alignas(seccomp_notif) std::array<char, 512> question_bytes = {};
  alignas(seccomp_notif_resp) std::array<char, 512> answer_bytes = {};
  auto* question = reinterpret_cast<seccomp_notif*>(question_bytes.data());
  auto* answer = reinterpret_cast<seccomp_notif_resp*>(answer_bytes.data());
  if (ioctl(descriptor, SECCOMP_IOCTL_NOTIF_RECV, question) != 0) return;

  const std::optional<Overwrite> overwrite = Judge(*question);
  // The asker may have died and its number been given to another while we looked.
  if (ioctl(descriptor, SECCOMP_IOCTL_NOTIF_ID_VALID, &question->id) != 0) return;
  answer->id = question->id;
  if (overwrite) {
    refused(*overwrite);
    answer->error = -EROFS;
  } else {
    answer->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  }
  (void)ioctl(descriptor, SECCOMP_IOCTL_NOTIF_SEND, answer);
}

}  // namespace vramtrace::launch
