#include "analyzer/cli/launch/scratch_layer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "analyzer/cli/launch/paths.h"

namespace vramtrace::launch {
namespace fs = std::filesystem;
namespace {

// Less room than this for what the program writes is worse than the guard: a checkpoint would not fit.
constexpr uint64_t kLeastRoomBytes = 1ULL << 30;

bool WriteFile(const char* path, const std::string& text) {
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int error = errno;
  close(file);
  errno = error;
  return written;
}

// A mount namespace of our own; without the privilege for one, inside a user namespace in which we are
// ourselves. `user` tells which.
int EnterNamespaces(bool* user) {
  *user = false;
  if (unshare(CLONE_NEWNS) == 0) return 0;
  const uid_t uid = geteuid();
  const gid_t gid = getegid();
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return errno;
  *user = true;
  // A group map by an unprivileged process needs setgroups denied first (user_namespaces(7)).
  if (!WriteFile("/proc/self/setgroups", "deny")) return errno;
  if (!WriteFile("/proc/self/uid_map", fmt::format("{} {} 1", uid, uid))) return errno;
  if (!WriteFile("/proc/self/gid_map", fmt::format("{} {} 1", gid, gid))) return errno;
  return 0;
}

// Overlay options end at a comma and layers at a colon, unless escaped.
std::string Escape(const fs::path& path) {
  std::string escaped;
  for (const char c : path.string()) {
    if (c == ',' || c == ':' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

int MountOverlay(const fs::path& lower, const fs::path& upper, const fs::path& work, bool user) {
  const std::string layers =
      fmt::format("lowerdir={},upperdir={},workdir={}", Escape(lower), Escape(upper), Escape(work));
  // redirect_dir lets an existing directory be renamed; it needs trusted attributes, which a user namespace
  // does not have.
  const std::string options = (user ? "userxattr," : "redirect_dir=on,") + layers;
  if (options.size() >= 4096) return ENAMETOOLONG;  // one page is all that mount(2) copies
  return mount("overlay", lower.c_str(), "overlay", 0, options.c_str()) == 0 ? 0 : errno;
}

// Mount points strictly below `folder`, from /proc/self/mountinfo (field 5; octal escapes).
bool HasMountsBelow(const fs::path& folder) {
  std::ifstream table("/proc/self/mountinfo");
  std::string line;
  while (std::getline(table, line)) {
    size_t begin = 0;
    for (int field = 1; field < 5; ++field) begin = line.find(' ', begin) + 1;
    const std::string raw = line.substr(begin, line.find(' ', begin) - begin);
    std::string point;
    for (size_t at = 0; at < raw.size(); ++at) {
      if (raw[at] == '\\' && at + 3 < raw.size()) {
        point += static_cast<char>(std::stoi(raw.substr(at + 1, 3), nullptr, 8));
        at += 3;
      } else {
        point += raw[at];
      }
    }
    if (fs::path(point) != folder && IsInside(point, folder)) return true;
  }
  return false;
}

std::vector<fs::path> ScratchCandidates() {
  std::vector<fs::path> candidates;
  const char* chosen = std::getenv("TMPDIR");
  if (chosen != nullptr && *chosen != '\0') candidates.emplace_back(chosen);
  for (const char* usual : {"/tmp", "/var/tmp", "/dev/shm"}) candidates.emplace_back(usual);
  return candidates;
}

// Work folders are made mode 000 by the kernel; what the program wrote may be read-only.
void RemoveTree(const fs::path& root) {
  std::error_code error;
  for (fs::recursive_directory_iterator each(root, error), end; !error && each != end;
       each.increment(error)) {
    if (each->is_directory(error) && !each->is_symlink(error)) {
      fs::permissions(each->path(), fs::perms::owner_all, fs::perm_options::add, error);
    }
  }
  fs::remove_all(root, error);
}

}  // namespace

ScratchLayer::ScratchLayer(fs::path root, const std::vector<fs::path>& folders, fs::path output)
    : root_(std::move(root)), output_(std::move(output)) {
  std::error_code error;
  working_ = fs::current_path(error);
  for (const fs::path& folder : folders) {
    const fs::path layer = root_ / fmt::format("layer{}", covers_.size());
    covers_.push_back({.folder = folder, .upper = layer / "written", .work = layer / "work"});
  }
}

ScratchLayer::~ScratchLayer() {
  if (!keep_) {
    RemoveTree(root_);
    return;
  }
  // Kept for its owner to look at: only the written files.
  for (const Cover& cover : covers_) RemoveTree(cover.work);
  std::error_code error;
  fs::remove(OutputInside(), error);
}

fs::path ScratchLayer::OutputInside() const { return root_ / "output"; }
fs::path ScratchLayer::Private() const { return root_ / "private"; }

bool ScratchLayer::MakeFolders(std::string* why) const {
  std::error_code error;
  std::vector<fs::path> needed = {OutputInside(), Private()};
  for (const Cover& cover : covers_) {
    needed.push_back(cover.upper);
    needed.push_back(cover.work);
  }
  for (const fs::path& folder : needed) {
    fs::create_directories(folder, error);
    if (error) {
      *why = fmt::format("{}: {}", folder.string(), error.message());
      return false;
    }
  }
  return true;
}

int ScratchLayer::Enter() const {
  bool user = false;
  if (const int error = EnterNamespaces(&user); error != 0) return error;
  // What is mounted here must not spread to the rest of the machine.
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return errno;
  if (!output_.empty() &&
      mount(output_.c_str(), OutputInside().c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) {
    return errno;
  }
  for (const Cover& cover : covers_) {
    if (const int error = MountOverlay(cover.folder, cover.upper, cover.work, user); error != 0) return error;
  }
  return chdir(working_.c_str()) == 0 ? 0 : errno;  // the same name, now inside the overlay
}

// Mounts in a child, and there makes, renames and removes a file in every covered folder: what a kernel says
// it can and what works differ by file system.
int ScratchLayer::Probe() const {
  const pid_t child = fork();
  if (child < 0) return errno;
  if (child == 0) {
    int error = Enter();
    for (const Cover& cover : covers_) {
      if (error != 0) break;
      const fs::path one = cover.folder / fmt::format(".vramtrace-probe-{}", getpid());
      const fs::path two = one.string() + "-renamed";
      const int file = open(one.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
      if (file < 0 || write(file, "x", 1) != 1 || rename(one.c_str(), two.c_str()) != 0 ||
          unlink(two.c_str()) != 0) {
        error = errno;
      }
    }
    _exit(error > 0 && error < 255 ? error : (error == 0 ? 0 : 255));
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) return errno;
  return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

std::unique_ptr<ScratchLayer> ScratchLayer::Create(const std::vector<fs::path>& folders,
                                                   const fs::path& output, std::string* why) {
  for (const fs::path& folder : folders) {
    struct stat status = {};
    if (stat(folder.c_str(), &status) != 0) {
      *why = fmt::format("{}: {}", folder.string(), strerror(errno));
      return nullptr;
    }
    if (HasMountsBelow(folder)) {
      *why = fmt::format("other file systems are mounted below {}", folder.string());
      return nullptr;
    }
  }
  *why = "no folder for temporary files has room";
  for (const fs::path& candidate : ScratchCandidates()) {
    std::error_code error;
    const fs::path base = fs::canonical(candidate, error);
    if (error) continue;
    const bool covered = std::any_of(folders.begin(), folders.end(),
                                     [&](const fs::path& folder) { return IsInside(base, folder); });
    struct statvfs space = {};
    if (covered || statvfs(base.c_str(), &space) != 0 ||
        uint64_t{space.f_bavail} * space.f_frsize < kLeastRoomBytes) {
      continue;
    }
    std::string name = (base / fmt::format("vramtrace-dry-run-{}-XXXXXX", getpid())).string();
    if (mkdtemp(name.data()) == nullptr) {
      *why = fmt::format("{}: {}", base.string(), strerror(errno));
      continue;
    }
    std::unique_ptr<ScratchLayer> layer(new ScratchLayer(name, folders, output));
    if (!layer->MakeFolders(why)) continue;
    const int failed = layer->Probe();
    if (failed == 0) return layer;
    *why = fmt::format("the kernel does not let this user mount one ({})", strerror(failed));
  }
  return nullptr;
}

ScratchLayer::Contents ScratchLayer::Written() const {
  Contents contents;
  for (const Cover& cover : covers_) {
    std::error_code error;
    for (fs::recursive_directory_iterator each(cover.upper, error), end; !error && each != end;
         each.increment(error)) {
      if (!each->is_regular_file(error) || each->is_symlink(error)) continue;
      ++contents.files;
      contents.bytes += each->file_size(error);
    }
  }
  return contents;
}

}  // namespace vramtrace::launch
