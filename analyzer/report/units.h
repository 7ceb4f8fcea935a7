#pragma once
// Numbers as the reports print them: binary units with the unit, exact bytes with separators.

#include <cstdint>
#include <string>
#include <string_view>

namespace vramtrace::report {

// "1.53 GiB", "812.0 MiB", "3.5 KiB", "512 B". Two decimals in GiB, one below.
[[nodiscard]] std::string Size(uint64_t bytes);
// The same with a sign where negative.
[[nodiscard]] std::string SignedSize(int64_t bytes);
// "1,610,612,736"
[[nodiscard]] std::string Grouped(uint64_t value);
[[nodiscard]] std::string SignedGrouped(int64_t value);
// "1 piece", "12 pieces"
[[nodiscard]] std::string Count(uint64_t count, std::string_view singular);
// "37.1 %"; "-" when there is no whole.
[[nodiscard]] std::string Share(double part, double whole);

}  // namespace vramtrace::report
