#pragma once
// A copy-on-write layer over folders, so that a dry run's writes never reach them. In a mount namespace of
// its own (and a user namespace, where the caller is not root) an overlay is mounted over each folder, with
// its upper layer in a temporary folder. The program sees its files, changes what it likes, and the folders
// stay as they were.
//
// Where the kernel or a container forbids it, or a folder has other mounts below it (they would vanish under
// an overlay), Create says why and the caller falls back to OverwriteGuard.

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace vramtrace::launch {

class ScratchLayer {
 public:
  // What the layer holds after a run.
  struct Contents {
    uint64_t files = 0;
    uint64_t bytes = 0;
  };

  // Covers `folders`. `output`, an existing folder, stays writable for real inside, as OutputInside(): the
  // trace goes there. Tries it in a child first; null and `why` when it cannot be done.
  [[nodiscard]] static std::unique_ptr<ScratchLayer> Create(const std::vector<std::filesystem::path>& folders,
                                                            const std::filesystem::path& output,
                                                            std::string* why);
  ~ScratchLayer();  // removes the layer unless Keep() was called
  ScratchLayer(const ScratchLayer&) = delete;
  ScratchLayer& operator=(const ScratchLayer&) = delete;

  // In the child, before exec: enters the namespaces, mounts, and returns to the working folder. 0, or errno.
  [[nodiscard]] int Enter() const;

  [[nodiscard]] std::filesystem::path OutputInside() const;  // by this path the child reaches `output`
  [[nodiscard]] std::filesystem::path Private() const;       // a writable folder for trackers and reports
  [[nodiscard]] const std::filesystem::path& Root() const { return root_; }
  [[nodiscard]] Contents Written() const;
  void Keep() { keep_ = true; }

 private:
  struct Cover {
    std::filesystem::path folder, upper, work;
  };
  ScratchLayer(std::filesystem::path root, const std::vector<std::filesystem::path>& folders,
               std::filesystem::path output);
  [[nodiscard]] bool MakeFolders(std::string* why) const;
  [[nodiscard]] int Probe() const;

  std::filesystem::path root_;
  std::filesystem::path output_;
  std::filesystem::path working_;
  std::vector<Cover> covers_;
  bool keep_ = false;
};

}  // namespace vramtrace::launch
