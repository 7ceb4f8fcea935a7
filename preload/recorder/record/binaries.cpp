#include "preload/recorder/record/binaries.h"

#include <elf.h>
#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace vramtrace::record {
namespace {

constexpr size_t kMaxBinaries = 4096;
constexpr size_t kTextBytes = 1024 * 1024;
constexpr size_t kMemoryBytes = kMaxBinaries * sizeof(MappedBinary) + kTextBytes;

LoaderCounters CountersOf(const dl_phdr_info* info) { return {info->dlpi_adds, info->dlpi_subs}; }

int ReadCounters(dl_phdr_info* info, size_t, void* counters) {
  *static_cast<LoaderCounters*>(counters) = CountersOf(info);
  return 1;  // the counters are the same in every entry: the first will do
}

bool IsLoaded(const dl_phdr_info* info, uint64_t begin, uint64_t size) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type == PT_LOAD && begin >= header.p_vaddr &&
        begin + size <= header.p_vaddr + header.p_filesz) {
      return true;
    }
  }
  return false;
}

// Finds NT_GNU_BUILD_ID in one PT_NOTE segment: notes of {name bytes, description bytes, type}, name,
// description, both padded to 4 (gABI, note section).
void FindBuildId(const unsigned char* note, size_t size, MappedBinary* binary) {
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    std::memcpy(&header, note, sizeof(header));
    const size_t name = (static_cast<size_t>(header.n_namesz) + 3) / 4 * 4;
    const size_t description = (static_cast<size_t>(header.n_descsz) + 3) / 4 * 4;
    const size_t total = sizeof(header) + name + description;
    if (total > size) return;
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 &&
        std::memcmp(note + sizeof(header), "GNU", 4) == 0) {
      binary->build_id_bytes =
          static_cast<uint32_t>(std::min<size_t>(header.n_descsz, MappedBinary::kMaxBuildId));
      std::memcpy(binary->build_id, note + sizeof(header) + name, binary->build_id_bytes);
      return;
    }
    note += total;
    size -= total;
  }
}

}  // namespace

LoaderCounters GetLoaderCounters() noexcept {
  LoaderCounters counters;
  dl_iterate_phdr(ReadCounters, &counters);
  return counters;
}

int BinarySnapshot::Visit(dl_phdr_info* info, size_t, void* self) {
  auto* const snapshot = static_cast<BinarySnapshot*>(self);
  snapshot->counters_ = CountersOf(info);
  if (snapshot->count_ == kMaxBinaries) return 1;
  MappedBinary binary;
  binary.begin = UINT64_MAX;
  binary.load_bias = info->dlpi_addr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type == PT_LOAD) {
      binary.begin = std::min<uint64_t>(binary.begin, info->dlpi_addr + header.p_vaddr);
      binary.end = std::max<uint64_t>(binary.end, info->dlpi_addr + header.p_vaddr + header.p_memsz);
    } else if (header.p_type == PT_NOTE && binary.build_id_bytes == 0 &&
               IsLoaded(info, header.p_vaddr, header.p_filesz)) {
      FindBuildId(reinterpret_cast<const unsigned char*>(info->dlpi_addr + header.p_vaddr), header.p_filesz,
                  &binary);
    }
  }
  if (binary.begin >= binary.end) return 0;
  const size_t length = std::strlen(info->dlpi_name);
  if (length <= kTextBytes - snapshot->text_used_) {
    char* const copy = snapshot->text_ + snapshot->text_used_;
    std::memcpy(copy, info->dlpi_name, length);
    binary.path = {copy, length};
    snapshot->text_used_ += length;
  }
  snapshot->binaries_[snapshot->count_++] = binary;
  return 0;
}

BinarySnapshot::BinarySnapshot() noexcept {
  void* const memory =
      mmap(nullptr, kMemoryBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return;
  memory_ = memory;
  binaries_ = static_cast<MappedBinary*>(memory);
  text_ = static_cast<char*>(memory) + kMaxBinaries * sizeof(MappedBinary);
  dl_iterate_phdr(Visit, this);
}

BinarySnapshot::~BinarySnapshot() {
  if (memory_ != nullptr) munmap(memory_, kMemoryBytes);
}

}  // namespace vramtrace::record
