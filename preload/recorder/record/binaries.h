#pragma once
// The ELF files that are mapped, by dl_iterate_phdr: what a native pc lies in. dladdr would take the loader's
// lock at every call and tells no build id.

#include <link.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace vramtrace::record {

// How many files the loader has mapped and unmapped so far. Known addresses stay right while `removed` stays.
struct LoaderCounters {
  uint64_t added = 0;
  uint64_t removed = 0;
  bool operator==(const LoaderCounters&) const = default;
};

// About 60 ns; takes the loader's lock: call it with no lock of ours held.
[[nodiscard]] LoaderCounters GetLoaderCounters() noexcept;

struct MappedBinary {
  static constexpr size_t kMaxBuildId = 32;  // the usual ones have 20 (SHA-1) or 16

  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t load_bias = 0;
  std::string_view path;  // empty: the executable
  uint8_t build_id[kMaxBuildId] = {};
  uint32_t build_id_bytes = 0;

  [[nodiscard]] std::string_view BuildId() const noexcept {
    return {reinterpret_cast<const char*>(build_id), build_id_bytes};
  }
};

// All of them at one instant, copied out. Up to 4096 files; more are left out.
class BinarySnapshot {
 public:
  // Takes the loader's lock: call it with no lock of ours held.
  BinarySnapshot() noexcept;
  ~BinarySnapshot();
  BinarySnapshot(const BinarySnapshot&) = delete;
  BinarySnapshot& operator=(const BinarySnapshot&) = delete;

  [[nodiscard]] size_t Count() const noexcept { return count_; }
  [[nodiscard]] const MappedBinary& At(size_t i) const noexcept { return binaries_[i]; }
  [[nodiscard]] const LoaderCounters& Counters() const noexcept { return counters_; }

 private:
  static int Visit(dl_phdr_info* info, size_t size, void* self);

  LoaderCounters counters_;
  MappedBinary* binaries_ = nullptr;
  size_t count_ = 0;
  char* text_ = nullptr;
  size_t text_used_ = 0;
  void* memory_ = nullptr;
};

}  // namespace vramtrace::record
