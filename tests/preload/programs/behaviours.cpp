// behaviours NAME: one thing that programs do which a preload library can spoil. Prints what it saw.

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr size_t kBytes = 4096;
constexpr int kThreads = 8;
constexpr int kRounds = 2000;

void* Allocate(size_t bytes = kBytes) {
  void* pointer = nullptr;
  if (cudaMalloc(&pointer, bytes) != cudaSuccess) std::abort();
  return pointer;
}

void AllocateAndFree(int rounds) {
  for (int i = 0; i < rounds; ++i) cudaFree(Allocate());
}

__attribute__((noinline)) void Throw() { throw std::runtime_error("through a traced process"); }

// What a deferred-bound exception needs: the unwinder of libgcc_s, not one that a preload brought.
int ThrowThroughTracedCalls() {
  (void)Allocate();
  try {
    Throw();
  } catch (const std::runtime_error& error) {
    std::printf("caught: %s\n", error.what());
  }
  Dl_info info{};
  void* const raise = dlsym(RTLD_DEFAULT, "_Unwind_RaiseException");
  if (raise == nullptr || dladdr(raise, &info) == 0) return 1;
  std::printf("unwinder: %s\n", std::strrchr(info.dli_fname, '/') + 1);
  return 0;
}

int FreeOnAnotherThread() {
  std::vector<void*> pointers;
  pointers.reserve(kRounds);
  for (int i = 0; i < kRounds; ++i) pointers.push_back(Allocate());
  std::thread([&] {
    for (void* pointer : pointers) cudaFree(pointer);
  }).join();
  return 0;
}

int ManyThreads() {
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(AllocateAndFree, kRounds);
  for (std::thread& thread : threads) thread.join();
  return 0;
}

int ForkedChild() {
  (void)Allocate();
  const pid_t child = fork();
  if (child == 0) {
    AllocateAndFree(100);  // no program may, but it must not write into its parent's trace
    std::exit(3);
  }
  int status = 0;
  waitpid(child, &status, 0);
  AllocateAndFree(1);
  return WEXITSTATUS(status) == 3 ? 0 : 1;
}

struct FreesLate {
  void* pointer = nullptr;
  ~FreesLate() { cudaFree(pointer); }
};

int FreesInDestructor() {
  static FreesLate late;
  late.pointer = Allocate();
  return 0;
}

const std::map<std::string, std::function<int()>> kBehaviours = {
    {"basic",
     [] {
       AllocateAndFree(kRounds);
       return 0;
     }},
    {"threads", ManyThreads},
    {"free_elsewhere", FreeOnAnotherThread},
    {"throw", ThrowThroughTracedCalls},
    {"fork", ForkedChild},
    {"exit",
     [] {
       (void)Allocate();
       std::exit(7);
       return 0;
     }},
    {"quick_exit",
     [] {
       (void)Allocate();
       std::quick_exit(7);
       return 0;
     }},
    {"_exit",
     [] {
       (void)Allocate();
       _exit(7);
       return 0;
     }},
    {"abort",
     [] {
       (void)Allocate();
       std::abort();
       return 0;
     }},
    {"kill",
     [] {
       AllocateAndFree(kRounds);
       raise(SIGKILL);
       return 0;
     }},
    {"destructor", FreesInDestructor},
};

}  // namespace

int main(int argc, char** argv) {
  const auto row = argc == 2 ? kBehaviours.find(argv[1]) : kBehaviours.end();
  return row == kBehaviours.end() ? 64 : row->second();
}
