#include "preload/recorder/hooks/import_patch.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "preload/recorder/hooks/entry_points.h"
#include "preload/recorder/hooks/hook_list.h"
#include "preload/recorder/hooks/real_functions.h"

namespace vramtrace::hooks {

#if defined(__x86_64__)

namespace {

const char* FileName(const char* path) {
  const char* const slash = path == nullptr ? nullptr : std::strrchr(path, '/');
  return slash == nullptr ? (path == nullptr ? "" : path) : slash + 1;
}

bool StartsWith(const char* text, const char* prefix) {
  return std::strncmp(text, prefix, std::strlen(prefix)) == 0;
}

// What the driver, the C library and the linker import from each other is theirs.
bool IsLeftAlone(const char* path) {
  const char* const file = FileName(path);
  for (const char* name : {"libcuda.so", "libc.so", "libdl.so", "ld-linux", "linux-vdso", "libpthread.so"}) {
    if (StartsWith(file, name)) return true;
  }
  return false;
}

// The library that a row's real function lies in.
bool LiesWhereItBelongs(Family family, const void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0) return false;
  const char* const file = FileName(info.dli_fname);
  switch (family) {
    case Family::kRuntime:
      return StartsWith(file, "libcudart");
    case Family::kDriver:
      return StartsWith(file, "libcuda.so");
    case Family::kC10:
      return StartsWith(file, "libc10.so");
    case Family::kLoader:
      return StartsWith(file, "libc.so") || StartsWith(file, "libdl.so");
  }
  return false;
}

// One loaded library, as its program headers describe it.
struct Module {
  uintptr_t base = 0;
  uintptr_t begin = 0;  // of its first and behind its last segment
  uintptr_t end = 0;
  uintptr_t read_only_begin = 0;  // what the linker made read-only after it had filled it
  uintptr_t read_only_end = 0;
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  struct Table {
    const ElfW(Rela) * rows = nullptr;
    size_t bytes = 0;
  };
  Table calls;  // DT_JMPREL
  Table data;   // DT_RELA
};

uintptr_t Absolute(const Module& module, ElfW(Addr) value) {
  // glibc has relocated these in place; a library whose dynamic section is read-only has not.
  return value >= module.base ? value : module.base + value;
}

void ReadDynamic(const ElfW(Dyn) * row, Module* module) {
  bool calls_are_rela = true;
  for (; row->d_tag != DT_NULL; ++row) {
    switch (row->d_tag) {
      case DT_SYMTAB:
        module->symbols = reinterpret_cast<const ElfW(Sym)*>(Absolute(*module, row->d_un.d_ptr));
        break;
      case DT_STRTAB:
        module->strings = reinterpret_cast<const char*>(Absolute(*module, row->d_un.d_ptr));
        break;
      case DT_JMPREL:
        module->calls.rows = reinterpret_cast<const ElfW(Rela)*>(Absolute(*module, row->d_un.d_ptr));
        break;
      case DT_PLTRELSZ:
        module->calls.bytes = row->d_un.d_val;
        break;
      case DT_PLTREL:
        calls_are_rela = row->d_un.d_val == DT_RELA;
        break;
      case DT_RELA:
        module->data.rows = reinterpret_cast<const ElfW(Rela)*>(Absolute(*module, row->d_un.d_ptr));
        break;
      case DT_RELASZ:
        module->data.bytes = row->d_un.d_val;
        break;
      default:
        break;
    }
  }
  if (!calls_are_rela) module->calls = {};
}

Module Describe(const dl_phdr_info& info) {
  Module module;
  module.base = info.dlpi_addr;
  module.begin = UINTPTR_MAX;
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info.dlpi_phdr[i];
    const uintptr_t begin = info.dlpi_addr + header.p_vaddr;
    const uintptr_t end = begin + header.p_memsz;
    if (header.p_type == PT_LOAD) {
      if (begin < module.begin) module.begin = begin;
      if (end > module.end) module.end = end;
    } else if (header.p_type == PT_DYNAMIC) {
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(begin);
    } else if (header.p_type == PT_GNU_RELRO) {
      module.read_only_begin = begin;
      module.read_only_end = end;
    }
  }
  if (dynamic != nullptr) ReadDynamic(dynamic, &module);
  return module;
}

void Store(const Module& module, void** word, void* value) {
  const auto page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(word);
  void* const page = reinterpret_cast<void*>(address / page_bytes * page_bytes);
  const bool read_only = address >= module.read_only_begin && address < module.read_only_end;
  if (read_only && mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0) return;
  __atomic_store_n(word, value, __ATOMIC_RELEASE);
  if (read_only) mprotect(page, page_bytes, PROT_READ);
}

void PatchTable(const Module& module, const Module::Table& table) {
  for (size_t i = 0; i < table.bytes / sizeof(ElfW(Rela)); ++i) {
    const ElfW(Rela)& row = table.rows[i];
    const auto type = ELF64_R_TYPE(row.r_info);
    if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
    const ElfW(Sym)& symbol = module.symbols[ELF64_R_SYM(row.r_info)];
    if (symbol.st_shndx != SHN_UNDEF) continue;
    const char* const name = module.strings + symbol.st_name;
    const int hook = RowNamed(name);
    if (hook < 0) continue;
    auto** const word = reinterpret_cast<void**>(module.base + row.r_offset);
    const auto now = reinterpret_cast<uintptr_t>(*word);
    // A call that was never made still leads into the library's own table.
    const bool unbound = now >= module.begin && now < module.end;
    if (IsOwnAddress(*word)) continue;
    if (!unbound && !LiesWhereItBelongs(kHooks[hook].family, *word)) continue;
    Store(module, word, DefinitionOf(static_cast<Hook>(hook)));
  }
}

int PatchModule(dl_phdr_info* info, size_t, void*) {
  if (IsLeftAlone(info->dlpi_name)) return 0;
  const Module module = Describe(*info);
  if (module.symbols == nullptr || module.strings == nullptr) return 0;
  if (IsOwnAddress(reinterpret_cast<const void*>(module.symbols))) return 0;
  PatchTable(module, module.calls);
  PatchTable(module, module.data);
  return 0;
}

}  // namespace

void PatchImports() noexcept { dl_iterate_phdr(PatchModule, nullptr); }

#else

void PatchImports() noexcept {}

#endif

}  // namespace vramtrace::hooks
