#pragma once
// The options about money that several subcommands share, with the same names everywhere.

#include <string>
#include <vector>

#include "analyzer/gpus/cost.h"
#include "analyzer/trace/result.h"

namespace CLI {
class App;
}

namespace vramtrace::cli {

class CostFlags {
 public:
  // Declares --prices, --currency, --hours and the rest. What they bind to lives in this object.
  void AddOptions(CLI::App& app);

  // The user asked about money with any of them.
  [[nodiscard]] bool Used() const;

  // What was asked, checked. An Error's `file` is the price file, or empty for a wrong option: kBadInput or
  // kUsage.
  [[nodiscard]] trace::Result<gpus::CostOptions> Options() const;
  [[nodiscard]] trace::Result<gpus::PriceTable> Prices() const;

 private:
  CLI::App* app_ = nullptr;
  gpus::CostOptions options_;
  std::string prices_ = "builtin";
  std::string reference_;
  std::vector<std::string> purchases_;
};

// Says the error as the command line does and returns the exit code that belongs to it.
[[nodiscard]] int SayCostError(const trace::Error& error);

}  // namespace vramtrace::cli
