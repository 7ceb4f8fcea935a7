#pragma once
// The environment of a child: the wrapper's own, changed by name. Order is kept, a name appears once.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vramtrace::launch {

class Environment {
 public:
  // From a null-terminated list such as `environ`. Entries without '=' are kept as they are.
  explicit Environment(const char* const* entries);

  [[nodiscard]] std::optional<std::string_view> Get(std::string_view name) const;
  void Set(std::string_view name, std::string_view value);
  void SetDefault(std::string_view name, std::string_view value);  // keeps the user's value
  void Remove(std::string_view name);

  // LD_PRELOAD: our libraries first, in the given order, then what the user had, without naming one file
  // twice. The loader splits at spaces and colons, so a path with either cannot be preloaded: such a path is
  // returned and nothing is changed.
  [[nodiscard]] std::optional<std::string> Preload(const std::vector<std::string>& libraries);

  // Pointers into this object, for execve; valid until the next change.
  [[nodiscard]] std::vector<char*> Pointers();

 private:
  [[nodiscard]] std::vector<std::string>::const_iterator Find(std::string_view name) const;

  std::vector<std::string> entries_;
};

}  // namespace vramtrace::launch
