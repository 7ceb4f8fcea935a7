#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>

#include "analyzer/doctor/collect.h"

namespace vramtrace::doctor {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr size_t kPiece = size_t{4} << 20;  // in order
constexpr size_t kSmall = 64 << 10;         // at random
constexpr size_t kMostFiles = 20000;

struct File {
  fs::path path;
  uint64_t bytes = 0;
};

// The largest files of a folder, at most so many looked at: a data set may have millions.
std::vector<File> LargestFiles(const std::string& folder) {
  std::vector<File> files;
  std::error_code error;
  size_t seen = 0;
  fs::recursive_directory_iterator each(folder, fs::directory_options::skip_permission_denied, error);
  for (const fs::recursive_directory_iterator end; !error && each != end && seen < kMostFiles;
       each.increment(error)) {
    ++seen;
    std::error_code ignored;
    if (!each->is_regular_file(ignored) || each->is_symlink(ignored)) continue;
    const uint64_t bytes = each->file_size(ignored);
    if (!ignored && bytes >= kSmall) files.push_back({each->path(), bytes});
  }
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.bytes > b.bytes; });
  if (files.size() > 64) files.resize(64);
  return files;
}

// Open without the page cache where the file system allows it; else what of the file is cached is dropped.
class Reader {
 public:
  explicit Reader(const fs::path& path) {
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
    direct_ = descriptor_ >= 0;
    if (!direct_) descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor_ >= 0 && !direct_) (void)::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_DONTNEED);
  }
  ~Reader() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  [[nodiscard]] bool direct() const { return direct_; }
  [[nodiscard]] ssize_t Read(void* buffer, size_t bytes, uint64_t offset) const {
    return ::pread(descriptor_, buffer, bytes, static_cast<off_t>(offset));
  }

 private:
  int descriptor_ = -1;
  bool direct_ = false;
};

struct Read {
  double bytes = 0;
  double seconds = 0;
  [[nodiscard]] std::optional<double> Rate() const {
    return bytes > 0 && seconds > 0 ? std::optional<double>(bytes / seconds) : std::nullopt;
  }
};

double Since(Clock::time_point began) { return std::chrono::duration<double>(Clock::now() - began).count(); }

Read InOrder(const std::vector<File>& files, char* buffer, double seconds, bool* cached) {
  Read read;
  const auto began = Clock::now();
  for (const File& file : files) {
    const Reader reader(file.path);
    *cached = *cached || !reader.direct();
    for (uint64_t offset = 0; offset < file.bytes && Since(began) < seconds; offset += kPiece) {
      const ssize_t got = reader.Read(buffer, kPiece, offset);
      if (got <= 0) break;
      read.bytes += static_cast<double>(got);
    }
    if (Since(began) >= seconds) break;
  }
  read.seconds = Since(began);
  return read;
}

Read AtRandom(const std::vector<File>& files, char* buffer, double seconds) {
  Read read;
  std::mt19937_64 random(1);  // the same places in every run
  const auto began = Clock::now();
  for (size_t number = 0; Since(began) < seconds && number < 100000; ++number) {
    const File& file = files[random() % files.size()];
    const Reader reader(file.path);
    const ssize_t got =
        reader.Read(buffer, kSmall, random() % std::max<uint64_t>(1, file.bytes / kSmall) * kSmall);
    if (got > 0) read.bytes += static_cast<double>(got);
  }
  read.seconds = Since(began);
  return read;
}

}  // namespace

DiskRates MeasureDisk(const std::string& folder, double seconds) {
  DiskRates rates;
  rates.folder = folder;
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    rates.why = fmt::format("{}: no such folder", folder);
    return rates;
  }
  const std::vector<File> files = LargestFiles(folder);
  if (files.empty()) {
    rates.why = fmt::format("{} holds no file of 64 KiB or more", folder);
    return rates;
  }
  // O_DIRECT wants an aligned buffer.
  const std::unique_ptr<char, void (*)(void*)> buffer(static_cast<char*>(std::aligned_alloc(4096, kPiece)),
                                                      &std::free);
  if (buffer == nullptr) return rates;
  // At random first: what is read in order afterwards would be cached for it where the cache cannot be kept
  // out.
  rates.random = AtRandom(files, buffer.get(), seconds / 3).Rate();
  rates.sequential = InOrder(files, buffer.get(), seconds * 2 / 3, &rates.cached).Rate();
  if (!rates.random || !rates.sequential) rates.why = fmt::format("{}: no file could be read", folder);
  return rates;
}

}  // namespace vramtrace::doctor
