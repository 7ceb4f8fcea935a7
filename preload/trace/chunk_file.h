#pragma once
// A trace file that grows a chunk at a time and never takes its process down. FORMAT.md says what the file
// promises; this is how:
//  * Space is reserved with posix_fallocate before it is mapped: a full disk is an error here, not a SIGBUS
//  later.
//  * RLIMIT_FSIZE is asked before the file grows: over it the kernel sends SIGXFSZ.
//  * The descriptor's identity is checked before each use: programs close descriptors that are not theirs
//    (os.closerange), and the number may then belong to a file of the user's.
//  * Pages that vanish all the same (the file truncated, the disk gone) are caught by fault_guard.h.
//  * File systems without shared mappings get plain pwrite: slower, and as safe.

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace vramtrace::trace {

enum class WriteMode {
  kAutomatic,  // mapped, plain where the file system cannot map
  kMapped,
  kPlain,
};

enum class FileStatus {
  kOk,
  kDiskFull,   // no space, over a quota or over RLIMIT_FSIZE
  kSizeLimit,  // over the limit that was asked for
  kVanished,   // the file was truncated, deleted or replaced under our feet
  kFailed,     // anything else; errno has it
};

class ChunkFile;

// A chunk's memory. Not mapped from a file when `file` is null (a chunk from before the file is open).
struct ChunkMemory {
  std::byte* bytes = nullptr;
  uint64_t index = 0;
  ChunkFile* file = nullptr;
};

class ChunkFile {
 public:
  static constexpr size_t kMaxPathBytes = 4096;

  struct Settings {
    uint64_t chunk_bytes = 0;
    uint64_t max_file_bytes = 0;  // 0: no limit
    WriteMode mode = WriteMode::kAutomatic;
  };

  constexpr ChunkFile() = default;

  // Creates the file, mode 0600. kFailed with errno EEXIST where something has that name already: nothing is
  // ever overwritten. `path` must be absolute or stay right for as long as the process keeps its folder.
  [[nodiscard]] FileStatus Create(const char* path, const Settings& settings) noexcept;

  // The next chunk: one that was given back, else a new one at the file's end. Its magic is zero; behind its
  // header lies anything. Any thread.
  [[nodiscard]] FileStatus Allocate(ChunkMemory* memory) noexcept;

  // Gives a chunk back that nobody has mapped any more: its magic becomes zero, its place is used again.
  [[nodiscard]] FileStatus Recycle(uint64_t index) noexcept;

  // A sealed chunk's bytes to read; Release() ends it.
  [[nodiscard]] FileStatus MapForReading(uint64_t index, ChunkMemory* memory) noexcept;

  // Chunks that Allocate() can still hand out under the size limit; UINT64_MAX without one.
  [[nodiscard]] uint64_t FreeChunks() noexcept;
  // As many chunks as the size limit allows; UINT64_MAX without one.
  [[nodiscard]] uint64_t MaxChunks() const noexcept {
    return settings_.max_file_bytes == 0 ? UINT64_MAX : settings_.max_file_bytes / settings_.chunk_bytes;
  }

  // Unmaps a chunk that its owner will not touch again.
  void Release(const ChunkMemory& memory) noexcept;

  // Plain mode: writes a part of the chunk through. In mapped mode there is nothing to do.
  [[nodiscard]] FileStatus WriteThrough(const ChunkMemory& memory, size_t offset, size_t size) noexcept;

  // Cuts the file to the chunks that were handed out. Chunks stay mapped.
  void Finish() noexcept;

  // errno of the last kFailed or kDiskFull; errno itself may be another thread's story by the time it is
  // told.
  [[nodiscard]] int LastError() const noexcept { return last_error_.load(std::memory_order_relaxed); }

  // Removes a file that holds nothing, after a failed start.
  void Remove() noexcept;

  [[nodiscard]] bool Plain() const noexcept { return plain_; }
  [[nodiscard]] const char* Path() const noexcept { return path_; }
  [[nodiscard]] uint64_t ChunkBytes() const noexcept { return settings_.chunk_bytes; }
  [[nodiscard]] uint64_t ChunkCount() const noexcept { return next_index_.load(std::memory_order_relaxed); }

  // For the child of a fork: the lock may be held by a thread that does not exist there.
  void LockForFork() noexcept { mutex_.lock(); }
  void UnlockAfterFork() noexcept { mutex_.unlock(); }

 private:
  [[nodiscard]] bool OwnDescriptor() noexcept;
  [[nodiscard]] FileStatus Failed(int error) noexcept;
  [[nodiscard]] FileStatus Reserve(uint64_t bytes) noexcept;
  [[nodiscard]] FileStatus Grow(uint64_t needed) noexcept;
  [[nodiscard]] FileStatus Map(ChunkMemory* memory) noexcept;

  std::mutex mutex_;
  Settings settings_;
  int descriptor_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  bool plain_ = false;
  bool finished_ = false;
  uint64_t reserved_bytes_ = 0;
  uint32_t* recycled_ = nullptr;  // places of chunks that were given back; room for every one of the file
  size_t recycled_count_ = 0;
  std::atomic<uint64_t> next_index_ = 0;
  std::atomic<int> last_error_ = 0;
  char path_[kMaxPathBytes] = {};
};

}  // namespace vramtrace::trace
