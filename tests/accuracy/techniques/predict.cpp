// technique_predict TRACE TECHNIQUE...: what the run would take with the techniques, as one JSON object.
// What they are written like: `vramtrace forecast --with`.

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "analyzer/forecast/build_stream.h"
#include "analyzer/forecast/replay.h"
#include "analyzer/forecast/technique.h"

namespace {

using namespace vramtrace::forecast;  // NOLINT(google-build-using-namespace): a program of its own

int Say(const nlohmann::json& object) {
  fmt::print("{}\n", object.dump());
  return 0;
}

int Predict(const std::string& trace, const std::vector<std::string>& texts) {
  const auto stream = BuildStream(trace, {});
  if (!stream.ok()) {
    fmt::print(stderr, "{}\n", stream.error().message);
    return 3;
  }
  auto options = OptionsOf(stream.value().facts);
  if (!options.ok()) {
    fmt::print(stderr, "{}\n", options.error().message);
    return 3;
  }
  std::vector<Chosen> chosen;
  for (const std::string& text : texts) {
    const auto parsed = ParseTechnique(text);
    if (const auto* why = std::get_if<std::string>(&parsed)) return Say({{"refused", *why}});
    chosen.push_back(std::get<Chosen>(parsed));
  }
  const auto edited = ApplyTechniques(stream.value(), chosen);
  if (const auto* why = std::get_if<std::string>(&edited)) return Say({{"refused", *why}});
  ReplayOptions with = options.value();
  for (const Chosen& one : chosen) {
    if (one.technique->settings != nullptr) one.technique->settings(&with, one.options);
  }
  const Outcome outcome = Replay(std::get<Stream>(edited), with);
  return Say({{"allocated", outcome.allocated.bytes}, {"reserved", outcome.reserved.bytes}});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: technique_predict TRACE TECHNIQUE...\n");
    return 2;
  }
  return Predict(argv[1], {argv + 2, argv + argc});
}
