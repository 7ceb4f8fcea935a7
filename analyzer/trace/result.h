#pragma once
// What a function that reads input returns: a value, or an error that tells the user where the input is
// wrong.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace vramtrace::trace {

// An error in a file. `message` says what was found and what was expected, as a sentence without the file's
// name.
struct Error {
  std::string file;
  std::optional<uint64_t> offset;  // bytes from the start of the file
  std::string message;

  // "run.vtrace, byte 128: this packet ..." for stderr.
  [[nodiscard]] std::string Sentence() const;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return std::holds_alternative<T>(state_); }
  // Only when ok().
  [[nodiscard]] T& value() { return std::get<T>(state_); }
  [[nodiscard]] const T& value() const { return std::get<T>(state_); }
  // Only when !ok().
  [[nodiscard]] const Error& error() const { return std::get<Error>(state_); }

 private:
  std::variant<T, Error> state_;
};

}  // namespace vramtrace::trace
