#pragma once
// Tests of the simulated device. The device is a process's state, read from the environment once: a test that
// needs another card, or a fresh book, runs its body in a process of its own.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

namespace vramtrace::simulator {

inline constexpr uint64_t kMebibyte = 1u << 20;
inline constexpr uint64_t kKibibyte = 1u << 10;

// Sets a variable for the processes that EXPECT_FRESH starts, and takes it back.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~Environment() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

// Runs the statements in a new process; they may use EXPECT_*.
#define EXPECT_FRESH(...)                                 \
  do {                                                    \
    GTEST_FLAG_SET(death_test_style, "threadsafe");       \
    EXPECT_EXIT(                                          \
        {                                                 \
          [&] { __VA_ARGS__ }();                          \
          std::exit(testing::Test::HasFailure() ? 1 : 0); \
        },                                                \
        testing::ExitedWithCode(0), "");                  \
  } while (false)

// A library of the simulator, opened as a program would find it preloaded.
class Library {
 public:
  explicit Library(const char* file)
      : handle_(
            dlopen((std::string(VRAMTRACE_SIMULATOR_FOLDER "/") + file).c_str(), RTLD_NOW | RTLD_GLOBAL)) {
    EXPECT_NE(handle_, nullptr) << dlerror();
  }
  template <class Function>
  [[nodiscard]] Function Get(const char* name) const {
    auto found = reinterpret_cast<Function>(dlsym(handle_, name));
    EXPECT_NE(found, nullptr) << name;
    return found;
  }
  [[nodiscard]] void* Find(const char* name) const { return dlsym(handle_, name); }

 private:
  void* handle_;
};

}  // namespace vramtrace::simulator
