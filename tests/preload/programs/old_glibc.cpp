// Uses what preload/glibc puts in the place of functions of a newer glibc, linked as the preload libraries
// are. Prints "done", or what was wrong.

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

int g_faults = 0;

void Expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  ++g_faults;
}

__attribute__((noinline)) int Throw(int depth) {
  if (depth == 0) throw std::runtime_error("thrown");
  return Throw(depth - 1) + 1;
}

void Exceptions() {
  for (int depth : {0, 1, 50}) {
    std::string caught;
    try {
      Throw(depth);
    } catch (const std::exception& error) {
      caught = error.what();
    }
    Expect(caught == "thrown", "an exception was not caught");
  }
  std::thread([] {
    try {
      Throw(3);
    } catch (const std::runtime_error&) {
      return;
    }
    Expect(false, "an exception of a thread was not caught");
  }).join();
}

void FileStatus() {
  struct stat by_path {};
  struct stat by_descriptor {};
  const int descriptor = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  Expect(stat("/proc/self/exe", &by_path) == 0 && S_ISREG(by_path.st_mode) && by_path.st_size > 1000,
         "stat differs");
  Expect(fstat(descriptor, &by_descriptor) == 0 && by_descriptor.st_ino == by_path.st_ino &&
             by_descriptor.st_size == lseek(descriptor, 0, SEEK_END),
         "fstat differs");
  Expect(stat("/nonexistent/file", &by_path) == -1 && errno == ENOENT, "stat of nothing");
  Expect(fstat(-1, &by_path) == -1 && errno == EBADF, "fstat of nothing");
  close(descriptor);
}

void RandomNumbers() {
  std::random_device device("arc4random");
  std::set<unsigned> values;
  for (int i = 0; i < 100; ++i) values.insert(device());
  Expect(values.size() > 90, "arc4random repeats itself");
}

void LoadedNames() {
  char name[16] = "";
  Expect(dlsym(RTLD_DEFAULT, "printf") != nullptr, "dlsym finds nothing");
  Expect(pthread_getname_np(pthread_self(), name, sizeof name) == 0 && name[0] != '\0', "no thread name");
}

}  // namespace

int main() {
  Exceptions();
  FileStatus();
  RandomNumbers();
  LoadedNames();
  if (g_faults == 0) std::puts("done");
  return g_faults;
}
