#pragma once
// A trace is attached to bug reports: what may be a secret is masked before it is written.

#include <cstddef>
#include <string_view>

namespace vramtrace::record {

// Decides argument by argument, in order, what of a command line may be kept:
//   --token X, --token=X, hf_token=X   the value of a name that has a word such as token, key, password in it
//   hf_..., sk-..., ghp_..., AKIA...   values that services mark as secrets themselves
//   https://user:password@host         the part before the @
class ArgumentMask {
 public:
  // The argument, or what stands for it: written to `room`, valid until the next call with it.
  [[nodiscard]] std::string_view Apply(std::string_view argument, char* room, size_t room_bytes) noexcept;

 private:
  bool mask_next_ = false;
};

// The same for KEY=VALUE of the environment.
[[nodiscard]] std::string_view MaskVariable(std::string_view variable, char* room,
                                            size_t room_bytes) noexcept;

// Whether a name (of an option, a variable, a setting) says that its value is a secret.
[[nodiscard]] bool NamesSecret(std::string_view name) noexcept;

}  // namespace vramtrace::record
