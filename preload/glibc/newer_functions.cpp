// What glibc's headers, libstdc++ and libgcc call since glibc 2.26. Each preload library has its own, hidden.
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <ctime>

extern "C" {

// glibc 2.32. libstdc++ asks whether it may do without atomic operations: never, other libraries have
// threads.
char __libc_single_threaded = 0;

// glibc 2.33: inline functions of the headers before, with a version of struct stat that the kernel shares.
int stat(const char* path, struct stat* result) noexcept {
  return static_cast<int>(syscall(SYS_newfstatat, AT_FDCWD, path, result, 0));
}

int fstat(int descriptor, struct stat* result) noexcept {
  return static_cast<int>(syscall(SYS_fstat, descriptor, result));
}
// What the C++ library's streams call.
int fstat64(int descriptor, struct stat64* result) noexcept {
  return static_cast<int>(syscall(SYS_fstat, descriptor, result));
}

// glibc 2.36. std::random_device's; seeds of ours come from getrandom itself.
uint32_t arc4random() noexcept {
  uint32_t value = 0;
  if (syscall(SYS_getrandom, &value, sizeof value, 0) != static_cast<long>(sizeof value)) {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    value = static_cast<uint32_t>(now.tv_nsec) * 2654435761U ^ static_cast<uint32_t>(getpid());
  }
  return value;
}
}

// glibc 2.35. libgcc's unwinder asks which object holds an instruction; older ones walked the objects
// themselves, as is done here: https://gcc.gnu.org/git/?p=gcc.git, libgcc/unwind-dw2-fde-dip.c. Only
// exceptions thrown and caught inside one preload library come here.
#ifdef DLFO_STRUCT_HAS_EH_DBASE
namespace {

struct Search {
  uintptr_t address;
  dl_find_object* result;
};

int Visit(dl_phdr_info* object, size_t /*size*/, void* data) {
  const Search& search = *static_cast<Search*>(data);
  const ElfW(Phdr)* segments = object->dlpi_phdr;
  const ElfW(Phdr)* frames = nullptr;
  uintptr_t begin = 0;
  uintptr_t end = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const uintptr_t start = object->dlpi_addr + segments[i].p_vaddr;
    if (segments[i].p_type == PT_GNU_EH_FRAME) frames = &segments[i];
    if (segments[i].p_type == PT_LOAD && search.address - start < segments[i].p_memsz) {
      begin = start;
      end = start + segments[i].p_memsz;
    }
  }
  if (end == 0) return 0;  // another object
  if (frames == nullptr) return -1;
  search.result->dlfo_map_start = reinterpret_cast<void*>(begin);
  search.result->dlfo_map_end = reinterpret_cast<void*>(end);
  search.result->dlfo_eh_frame = reinterpret_cast<void*>(object->dlpi_addr + frames->p_vaddr);
  return 1;
}

}  // namespace

extern "C" int _dl_find_object(void* address, dl_find_object* result) noexcept {
  *result = {};
  Search search{reinterpret_cast<uintptr_t>(address), result};
  return dl_iterate_phdr(Visit, &search) == 1 ? 0 : -1;
}
#endif
