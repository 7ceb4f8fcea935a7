#pragma once
// "{batch}" in a command line.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace vramtrace::fit {

// The name of the one placeholder in a command: letters, digits and _ between braces, anywhere in a word.
// `asked`: the name to take where there are several; empty: the only one. The string is an error with the
// remedy.
struct Placeholder {
  std::string name;
};
[[nodiscard]] std::variant<Placeholder, std::string> FindPlaceholder(std::span<const std::string> command,
                                                                     std::string_view asked);

// Every "{name}" replaced.
[[nodiscard]] std::vector<std::string> Fill(std::span<const std::string> command, std::string_view name,
                                            uint64_t value);

// A recorded command with its batch made a placeholder: the one option with "batch" in its name whose value
// is `batch`. The string says why there is none.
[[nodiscard]] std::variant<std::vector<std::string>, std::string> WithPlaceholder(
    std::span<const std::string> command, uint64_t batch);

}  // namespace vramtrace::fit
