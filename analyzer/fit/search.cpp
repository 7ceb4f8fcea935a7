#include "analyzer/fit/search.h"

#include <map>

#include "analyzer/fit/edge.h"
#include "analyzer/fit/laboratory.h"
#include "analyzer/fit/learning.h"

namespace vramtrace::fit {
namespace {

struct Group {
  const Target* recorded_on = nullptr;
  Learnt learnt;
};

}  // namespace

FitReport Search(const SearchOptions& options, Runner* runner, const std::vector<MakeForecaster>& forecasters,
                 const Progress& progress) {
  FitReport report;
  report.command = options.command;
  report.placeholder = options.placeholder;
  Laboratory laboratory(options, runner, progress, &report);
  std::map<std::pair<int, int>, Group> groups;  // by compute capability
  for (const Target& target : options.targets) {
    Group& group = groups[{target.gpu->compute_major, target.gpu->compute_minor}];
    if (group.recorded_on == nullptr) {
      group.recorded_on = &target;
      group.learnt = Learn(&laboratory, target, forecasters);
      if (group.learnt.forecaster == nullptr) return report;
    }
    CardAnswer answer;
    const bool go_on = FindEdge(&laboratory, target, *group.recorded_on, &group.learnt, &answer);
    report.cards.push_back(std::move(answer));
    if (!go_on) return report;
  }
  return report;
}

}  // namespace vramtrace::fit
