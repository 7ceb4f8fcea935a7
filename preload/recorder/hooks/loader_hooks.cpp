// dlsym: how libraries with a runtime linked into them (cuBLAS, cuDNN, NCCL, nvcc's default) and every
// program that opens libcuda by itself reach the driver.
//
// Rules, each learned from a tool that broke programs (../README.md, "dlsym"):
//  * RTLD_NEXT and RTLD_DEFAULT depend on who asks: those calls jump on to the real function with the
//  caller's
//    return address still in place.
//  * What is swapped is decided by the address that the real function answered, and only a driver function's
//  is.
//  * What libcuda itself asks for is never swapped.

#include <dlfcn.h>

#include <atomic>

#include "preload/recorder/hooks/entry_points.h"
#include "preload/recorder/hooks/real_functions.h"

#if defined(__x86_64__)

using Dlsym = void* (*)(void* handle, const char* name);

extern "C" {

__attribute__((visibility("hidden"))) std::atomic<Dlsym> vramtrace_real_dlsym{nullptr};

__attribute__((visibility("hidden"))) void vramtrace_find_real_dlsym() {
  // The default version since glibc 2.34, and that of libdl before. dlvsym itself is not hooked.
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5"}) {
    if (void* const address = dlvsym(RTLD_NEXT, "dlsym", version)) {
      vramtrace_real_dlsym.store(reinterpret_cast<Dlsym>(address), std::memory_order_release);
      return;
    }
  }
  __builtin_trap();  // a C library without dlsym: nothing could have been loaded
}

__attribute__((visibility("hidden"))) void* vramtrace_filtered_dlsym(void* handle, const char* name,
                                                                     const void* caller) {
  void* const address = vramtrace_real_dlsym.load(std::memory_order_acquire)(handle, name);
  // Every driver function's name begins so; the address decides. Our own look-ups want the real one.
  if (address == nullptr || name[0] != 'c' || name[1] != 'u' || vramtrace::hooks::IsOwnAddress(caller)) {
    return address;
  }
  void* const driver = vramtrace::hooks::HookedAddressFor(address, caller);
  return driver != address ? driver : vramtrace::hooks::HookedRuntimeAddress(name, address);
}

}  // extern "C"

// rdi: handle, rsi: name. The two special handles are 0 and -1.
__asm__(R"(
  .text
  .globl dlsym
  .type dlsym, @function
  .p2align 4
dlsym:
  .cfi_startproc
  endbr64
1:
  mov vramtrace_real_dlsym(%rip), %rax
  test %rax, %rax
  jz 3f
  lea 1(%rdi), %r11
  cmp $1, %r11
  jbe 2f
  mov (%rsp), %rdx
  jmp vramtrace_filtered_dlsym
2:
  jmp *%rax
3:
  push %rdi
  .cfi_adjust_cfa_offset 8
  push %rsi
  .cfi_adjust_cfa_offset 8
  sub $8, %rsp
  .cfi_adjust_cfa_offset 8
  call vramtrace_find_real_dlsym
  add $8, %rsp
  .cfi_adjust_cfa_offset -8
  pop %rsi
  .cfi_adjust_cfa_offset -8
  pop %rdi
  .cfi_adjust_cfa_offset -8
  jmp 1b
  .cfi_endproc
  .size dlsym, .-dlsym
)");

#endif  // __x86_64__
