#pragma once
// Stops a dry run before it changes a file that was there already, on machines where a scratch layer cannot
// be mounted. The kernel asks us (seccomp user notification, Linux 5.5, no privilege needed) before every
// system call of the program or its children that opens a file for writing, truncates, renames or removes
// one. It sees every program, statically linked ones too.
//
// Protected: regular files and symbolic links under the folders that were there before the run and are not
// empty, and directories against renaming. Free: everything the run itself made, empty files (locks),
// __pycache__, /dev and /proc. Not seen: io_uring, writes through descriptors or shared mappings that the
// wrapper's caller opened, modes and times of files, anything outside the folders.
// This is a seat belt for honest programs, not a sandbox: the path is read before the call is let go on.

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

struct seccomp_notif;
struct seccomp_notif_resp;

namespace vramtrace::launch {

// What the program was about to do when it was stopped.
struct Overwrite {
  pid_t process = 0;
  std::filesystem::path file;
  std::string deed;  // "open /work/model.pt for writing": completes "it was about to"
};

class OverwriteGuard {
 public:
  // `folders` are made absolute. Notes the time of each one's file system: what is younger was made by the
  // run.
  explicit OverwriteGuard(const std::vector<std::filesystem::path>& folders);

  // True where the kernel can do this. Tries it in a child of its own.
  [[nodiscard]] static bool Available();

  // In the child, before exec. Returns the descriptor on which the kernel asks, or -1 and errno.
  [[nodiscard]] static int Install();

  // In the wrapper, when the descriptor is readable: answers one question. When the answer is no, `refused`
  // is called before the program hears it, so that it can be ended without a word. Interrupted or vanished
  // askers are no error.
  void Answer(int descriptor, const std::function<void(const Overwrite&)>& refused) const;

  // The decision on one path, for tests: true for a file that must not be changed.
  [[nodiscard]] bool IsProtected(const std::filesystem::path& canonical_path) const;

 private:
  struct Folder {
    std::filesystem::path path;
    struct timespec start;
  };
  [[nodiscard]] std::optional<Overwrite> Judge(const seccomp_notif& question) const;

  std::vector<Folder> folders_;
};

}  // namespace vramtrace::launch
