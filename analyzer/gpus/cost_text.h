#pragma once
// A CardTable for people and for programs. Both say where each price comes from and which figures are
// estimates.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "analyzer/gpus/cost.h"

namespace vramtrace::gpus {

// The cards that fit, one line a card, at most `lines`; then what does not fit, what follows from the user's
// habits (month against hour, buying against renting), and the assumptions. Ends with a newline.
[[nodiscard]] std::string CardsText(const CardTable& table, size_t lines = 12);

// Every row, those that are too small too.
[[nodiscard]] nlohmann::ordered_json CardsJson(const CardTable& table);

// "0.60", "12.4", "1,234": an amount of money or hours in as many digits as it deserves.
[[nodiscard]] std::string Amount(double value);

}  // namespace vramtrace::gpus
