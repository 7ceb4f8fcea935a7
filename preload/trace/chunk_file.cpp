#include "preload/trace/chunk_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "preload/trace/fault_guard.h"

namespace vramtrace::trace {
namespace {

// Descriptors below this are left to the program: shells and daemons expect low numbers to be free.
constexpr int kLowestDescriptor = 200;

// How far the file is reserved ahead of its last chunk: a tenth of it, at least a chunk, at most this.
constexpr uint64_t kMaxReserveAhead = 4 * 1024 * 1024;

bool OverSizeLimit(uint64_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return false;
  return bytes > limit.rlim_cur;
}

}  // namespace

FileStatus ChunkFile::Failed(int error) noexcept {
  last_error_.store(error, std::memory_order_relaxed);
  errno = error;
  return error == ENOSPC || error == EDQUOT || error == EFBIG ? FileStatus::kDiskFull : FileStatus::kFailed;
}

FileStatus ChunkFile::Create(const char* path, const Settings& settings) noexcept {
  const std::lock_guard lock(mutex_);
  const size_t path_bytes = std::strlen(path) + 1;
  if (path_bytes > kMaxPathBytes) return Failed(ENAMETOOLONG);
  int descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0) return Failed(errno);
  const int high = fcntl(descriptor, F_DUPFD_CLOEXEC, kLowestDescriptor);
  if (high >= 0) {
    close(descriptor);
    descriptor = high;
  }
  struct stat status {};
  if (fstat(descriptor, &status) != 0) {
    const int error = errno;
    close(descriptor);
    return Failed(error);
  }
  std::memcpy(path_, path, path_bytes);
  settings_ = settings;
  descriptor_ = descriptor;
  device_ = status.st_dev;
  inode_ = status.st_ino;
  plain_ = settings.mode == WriteMode::kPlain;
  return FileStatus::kOk;
}

// Whether descriptor_ is our file; opens it anew where the program closed the descriptor.
bool ChunkFile::OwnDescriptor() noexcept {
  const auto is_ours = [this](const struct stat& status) {
    return status.st_dev == device_ && status.st_ino == inode_ && status.st_nlink > 0;
  };
  struct stat status {};
  if (fstat(descriptor_, &status) == 0 && status.st_dev == device_ && status.st_ino == inode_) {
    return status.st_nlink > 0;
  }
  // The number is free or somebody else's by now: it is not ours to close.
  descriptor_ = open(path_, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor_ < 0) return false;
  if (fstat(descriptor_, &status) == 0 && is_ours(status)) return true;
  close(descriptor_);
  descriptor_ = -1;
  return false;
}

FileStatus ChunkFile::Reserve(uint64_t bytes) noexcept {
  if (OverSizeLimit(bytes)) return Failed(EFBIG);
  int error = 0;
  do {
    error = posix_fallocate(descriptor_, static_cast<off_t>(reserved_bytes_),
                            static_cast<off_t>(bytes - reserved_bytes_));
  } while (error == EINTR);
  if (error != 0) return Failed(error);
  reserved_bytes_ = bytes;
  return FileStatus::kOk;
}

FileStatus ChunkFile::Grow(uint64_t needed) noexcept {
  if (!OwnDescriptor()) return FileStatus::kVanished;
  struct stat status {};
  if (fstat(descriptor_, &status) != 0 || static_cast<uint64_t>(status.st_size) < reserved_bytes_) {
    return FileStatus::kVanished;
  }
  if (needed <= reserved_bytes_) return FileStatus::kOk;
  const uint64_t chunk = settings_.chunk_bytes;
  uint64_t ahead = std::clamp(reserved_bytes_ / 10 / chunk * chunk, uint64_t{0}, kMaxReserveAhead);
  if (settings_.max_file_bytes != 0) {
    ahead = std::min(ahead, (settings_.max_file_bytes - needed) / chunk * chunk);
  }
  if (ahead > 0 && Reserve(needed + ahead) == FileStatus::kOk) return FileStatus::kOk;
  return Reserve(needed);
}

FileStatus ChunkFile::Map(ChunkMemory* memory) noexcept {
  const size_t size = settings_.chunk_bytes;
  void* bytes = MAP_FAILED;
  if (!plain_) {
    bytes = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor_,
                 static_cast<off_t>(memory->index * size));
    if (bytes == MAP_FAILED) {
      // ENODEV, EINVAL, EACCES: file systems that do not share mappings (9p, some FUSE).
      const bool cannot_map = errno == ENODEV || errno == EINVAL || errno == EACCES || errno == EOPNOTSUPP;
      if (settings_.mode != WriteMode::kAutomatic || !cannot_map || memory->index != 0) return Failed(errno);
      plain_ = true;
    }
  }
  if (plain_) {
    bytes = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED) return Failed(errno);
  }
  // A child must neither write here nor pay for the page tables.
  madvise(bytes, size, MADV_DONTFORK);
  memory->bytes = static_cast<std::byte*>(bytes);
  memory->file = this;
  if (!plain_) GuardMapping(memory->bytes, size);
  return FileStatus::kOk;
}

FileStatus ChunkFile::Allocate(ChunkMemory* memory) noexcept {
  const std::lock_guard lock(mutex_);
  if (finished_ || descriptor_ < 0) return Failed(EBADF);
  if (recycled_count_ > 0) {
    if (!OwnDescriptor()) return FileStatus::kVanished;
    memory->index = recycled_[recycled_count_ - 1];
    const FileStatus mapped = Map(memory);
    if (mapped == FileStatus::kOk) --recycled_count_;
    return mapped;
  }
  const uint64_t index = next_index_.load(std::memory_order_relaxed);
  const uint64_t end = (index + 1) * settings_.chunk_bytes;
  if (settings_.max_file_bytes != 0 && end > settings_.max_file_bytes) return FileStatus::kSizeLimit;
  if (const FileStatus grown = Grow(end); grown != FileStatus::kOk) return grown;
  memory->index = index;
  if (const FileStatus mapped = Map(memory); mapped != FileStatus::kOk) return mapped;
  next_index_.store(index + 1, std::memory_order_relaxed);
  return FileStatus::kOk;
}

void ChunkFile::Release(const ChunkMemory& memory) noexcept {
  UnguardMapping(memory.bytes);
  munmap(memory.bytes, settings_.chunk_bytes);
}

FileStatus ChunkFile::Recycle(uint64_t index) noexcept {
  const std::lock_guard lock(mutex_);
  if (finished_ || descriptor_ < 0) return Failed(EBADF);
  if (recycled_ == nullptr) {
    void* const room = mmap(nullptr, MaxChunks() * sizeof(*recycled_), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) return Failed(errno);
    recycled_ = static_cast<uint32_t*>(room);
  }
  if (!OwnDescriptor()) return FileStatus::kVanished;
  constexpr uint64_t kNoMagic = 0;
  ssize_t written = 0;
  do {
    written =
        pwrite(descriptor_, &kNoMagic, sizeof(kNoMagic), static_cast<off_t>(index * settings_.chunk_bytes));
  } while (written < 0 && errno == EINTR);
  if (written != sizeof(kNoMagic)) return Failed(written < 0 ? errno : EIO);
  recycled_[recycled_count_++] = static_cast<uint32_t>(index);
  return FileStatus::kOk;
}

FileStatus ChunkFile::MapForReading(uint64_t index, ChunkMemory* memory) noexcept {
  const std::lock_guard lock(mutex_);
  if (!OwnDescriptor()) return FileStatus::kVanished;
  const size_t size = settings_.chunk_bytes;
  const auto offset = static_cast<off_t>(index * size);
  void* const bytes = plain_ ? mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                             : mmap(nullptr, size, PROT_READ, MAP_SHARED | MAP_POPULATE, descriptor_, offset);
  if (bytes == MAP_FAILED) return Failed(errno);
  madvise(bytes, size, MADV_DONTFORK);
  *memory = {.bytes = static_cast<std::byte*>(bytes), .index = index, .file = this};
  if (!plain_) {
    GuardMapping(bytes, size);
    return FileStatus::kOk;
  }
  for (size_t done = 0; done < size;) {
    const ssize_t got =
        pread(descriptor_, memory->bytes + done, size - done, offset + static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  return FileStatus::kOk;
}

uint64_t ChunkFile::FreeChunks() noexcept {
  const std::lock_guard lock(mutex_);
  if (settings_.max_file_bytes == 0) return UINT64_MAX;
  return MaxChunks() - next_index_.load(std::memory_order_relaxed) + recycled_count_;
}

FileStatus ChunkFile::WriteThrough(const ChunkMemory& memory, size_t offset, size_t size) noexcept {
  if (!plain_) return FileStatus::kOk;
  const std::lock_guard lock(mutex_);
  if (!OwnDescriptor()) return FileStatus::kVanished;
  while (size > 0) {
    const auto position = static_cast<off_t>(memory.index * settings_.chunk_bytes + offset);
    const ssize_t written = pwrite(descriptor_, memory.bytes + offset, size, position);
    if (written < 0) {
      if (errno == EINTR) continue;
      return Failed(errno);
    }
    offset += static_cast<size_t>(written);
    size -= static_cast<size_t>(written);
  }
  return FileStatus::kOk;
}

void ChunkFile::Finish() noexcept {
  const std::lock_guard lock(mutex_);
  if (finished_ || descriptor_ < 0) return;
  finished_ = true;
  const uint64_t used = next_index_.load(std::memory_order_relaxed) * settings_.chunk_bytes;
  // Never make the file longer: where somebody cut it, what is gone is gone.
  if (used >= reserved_bytes_ || !OwnDescriptor()) return;
  struct stat status {};
  if (fstat(descriptor_, &status) != 0 || static_cast<uint64_t>(status.st_size) <= used) return;
  [[maybe_unused]] const int cut = ftruncate(descriptor_, static_cast<off_t>(used));
}

void ChunkFile::Remove() noexcept {
  const std::lock_guard lock(mutex_);
  if (descriptor_ < 0) return;
  if (OwnDescriptor()) {
    unlink(path_);
    close(descriptor_);
  }
  descriptor_ = -1;
}

}  // namespace vramtrace::trace
