#pragma once
// Rows of the catalogue that a user asked for, in the order asked for.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/gpus/prices.h"
#include "preload/catalogue/catalogue.h"

namespace vramtrace::gpus {

struct Selection {
  uint64_t least_memory_bytes = 0;  // of the CUDA total
  double least_bandwidth_gb_per_s = 0;
  double most_per_hour = 0;  // of the cheapest offer in `currency`; 0: any, also cards without a price
  std::string currency = "USD";
  std::string architecture;  // as the catalogue spells it, whatever the case; empty: any
  std::string sort = "catalogue";
};

// The orders that Selection::sort takes; a row each in select.cpp.
[[nodiscard]] std::vector<std::string> SortNames();

// What a card costs an hour at its cheapest offer in this currency; 0 where there is none.
[[nodiscard]] double CheapestHour(const catalogue::Gpu& gpu, const PriceTable& prices,
                                  std::string_view currency);

[[nodiscard]] std::vector<const catalogue::Gpu*> Select(const Selection& selection, const PriceTable& prices);

}  // namespace vramtrace::gpus
