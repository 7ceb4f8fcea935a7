#include "preload/simulator/core/python_exit.h"

#include <dirent.h>
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace vramtrace::simulator {
namespace {

// The few functions of CPython's stable interface that are needed, looked up so that a program without Python
// needs none of them. Types are opaque here.
using Object = void;
struct MethodDefinition {  // PyMethodDef
  const char* name;
  Object* (*function)(Object*, Object*);
  int flags;
  const char* documentation;
};
constexpr int kNoArguments = 4;  // METH_NOARGS

template <class Function>
Function Lookup(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

struct Python {
  int (*add_pending_call)(int (*)(void*),
                          void*) = Lookup<int (*)(int (*)(void*), void*)>("Py_AddPendingCall");
  Object* (*import)(const char*) = Lookup<Object* (*)(const char*)>("PyImport_ImportModule");
  Object* (*new_function)(MethodDefinition*, Object*, Object*) =
      Lookup<Object* (*)(MethodDefinition*, Object*, Object*)>("PyCFunction_NewEx");
  Object* (*call_method)(Object*, const char*, const char*, ...) =
      Lookup<Object* (*)(Object*, const char*, const char*, ...)>("PyObject_CallMethod");
  Object* (*from_long)(long) = Lookup<Object* (*)(long)>("PyLong_FromLong");
  void (*release)(Object*) = Lookup<void (*)(Object*)>("Py_DecRef");
  void (*clear_error)() = Lookup<void (*)()>("PyErr_Clear");
  void* (*save_thread)() = Lookup<void* (*)()>("PyEval_SaveThread");
  void (*restore_thread)(void*) = Lookup<void (*)(void*)>("PyEval_RestoreThread");

  [[nodiscard]] bool Complete() const {
    return add_pending_call != nullptr && import != nullptr && new_function != nullptr &&
           call_method != nullptr && from_long != nullptr && release != nullptr && clear_error != nullptr &&
           save_thread != nullptr && restore_thread != nullptr;
  }
};

const Python& ThePython() {
  static const Python* python = new Python;
  return *python;
}

Object* AtExit(Object* /*self*/, Object* /*arguments*/) {
  void* thread = ThePython().save_thread();  // the threads that are waited for may need the GIL
  WaitForAutogradThreads();
  ThePython().restore_thread(thread);
  return ThePython().from_long(0);
}

MethodDefinition at_exit_definition = {"vramtrace_wait_for_autograd", AtExit, kNoArguments, nullptr};

// Runs on the main thread with the GIL held.
int RegisterWithAtExit(void* /*unused*/) {
  const Python& python = ThePython();
  Object* module = python.import("atexit");
  Object* function = module != nullptr ? python.new_function(&at_exit_definition, nullptr, nullptr) : nullptr;
  Object* result = function != nullptr ? python.call_method(module, "register", "O", function) : nullptr;
  if (result == nullptr) python.clear_error();
  for (Object* object : {module, function, result}) {
    if (object != nullptr) python.release(object);
  }
  return 0;
}

std::string ReadLine(const std::string& path) {
  char line[512] = {};
  FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return {};
  size_t length = std::fread(line, 1, sizeof line - 1, file);
  std::fclose(file);
  return {line, length};
}

// Voluntary context switches of a thread, or -1 while it runs: a thread that sleeps and has not been switched
// since the last look has nothing to do.
long IdleMark(const std::string& task) {
  std::string stat = ReadLine(task + "/stat");
  size_t state = stat.rfind(')');
  if (state == std::string::npos || state + 2 >= stat.size() || stat[state + 2] != 'S') return -1;
  FILE* file = std::fopen((task + "/status").c_str(), "re");
  if (file == nullptr) return -1;
  char line[256];
  long switches = -1;
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (std::strncmp(line, "voluntary_ctxt_switches:", 24) == 0) switches = std::atol(line + 24);
  }
  std::fclose(file);
  return switches;
}

// A sum over the autograd threads that changes while any of them works; -1 while one runs, 0 without threads.
long AutogradMark() {
  DIR* tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return 0;
  long sum = 0;
  while (const dirent* entry = readdir(tasks)) {
    if (entry->d_name[0] == '.') continue;
    std::string task = std::string("/proc/self/task/") + entry->d_name;
    if (!ReadLine(task + "/comm").starts_with("pt_autograd")) continue;
    long mark = IdleMark(task);
    if (mark < 0) {
      sum = -1;
      break;
    }
    sum += mark + 1;
  }
  closedir(tasks);
  return sum;
}

}  // namespace

void RegisterPythonExit() {
  static std::atomic<bool> done{false};
  if (!ThePython().Complete() || done.exchange(true)) return;
  if (ThePython().add_pending_call(RegisterWithAtExit, nullptr) != 0) done.store(false);
}

void WaitForAutogradThreads() {
  constexpr int kIdleLooks = 5;
  constexpr int kMostLooks = 500;
  constexpr unsigned kPauseMicroseconds = 4000;
  long last = AutogradMark();
  if (last == 0) return;
  for (int look = 0, idle = 0; look < kMostLooks && idle < kIdleLooks; ++look) {
    usleep(kPauseMicroseconds);
    long mark = AutogradMark();
    idle = mark >= 0 && mark == last ? idle + 1 : 0;
    last = mark;
  }
}

}  // namespace vramtrace::simulator
