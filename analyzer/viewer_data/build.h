#pragma once
// A trace to what the viewer shows: the report, curves of memory over time, blocks with their lives, stacks.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "analyzer/report/build.h"
#include "analyzer/trace/result.h"
#include "analyzer/viewer_data/blocks.h"
#include "analyzer/viewer_data/observer.h"

namespace vramtrace::viewer_data {

// What a data file is to hold.
struct FileOptions {
  // Up to this many blocks all are written; of a longer trace those alive at chosen instants. 16 bytes each
  // in the page's memory.
  size_t blocks = 6'000'000;
  // Of a longer trace also all blocks that live within so many ticks of what the report speaks of: there
  // every instant and range is whole. Not where the page may ask.
  Tick detail = Tick{1} << 15;
  std::string name = {};  // of the trace, for people; empty: the file's
  bool base = false;      // the run that others are compared with
  bool served = false;    // the page may ask for what is not in the file (see serve.h)
  std::vector<report::v1::Forecast> forecasts = {};  // for the what-if panel; the first is the run as it is
  std::string whole_run =
      {};                // commands that forecast a run which died too early for that; empty: it did not
  uint64_t version = 0;  // of the trace as it was read, where a live one is served
};

struct WrittenFile {
  std::string bytes;  // see columns.h
  bool complete = true;
  size_t blocks = 0;  // written
};

// What the report of a page says of why memory filled; see diagnose/diagnose.h.
enum class Diagnoses : uint8_t {
  kNone,
  kWithoutReplays,  // remedies say what they save at most
  kWithReplays,     // and what is used then, which takes about as long as a forecast
};

// Ticks, both inclusive.
struct Stretch {
  Tick from = 0;
  Tick to = 0;
};

class ViewerData {
 public:
  // The report's passes over the trace, those of the diagnoses, and one for the lives of all blocks.
  // Errors are those of report::BuildReport.
  [[nodiscard]] static trace::Result<std::unique_ptr<ViewerData>> Build(
      const std::string& path, Diagnoses diagnoses = Diagnoses::kWithoutReplays);

  [[nodiscard]] WrittenFile Write(const FileOptions& options);
  // Columns "block.*" of a selection, in the same form and with the same kinds, addresses and texts.
  [[nodiscard]] std::string WriteSelection(const Selection& selection) const;

  [[nodiscard]] const report::BuiltReport& built() const { return built_; }
  [[nodiscard]] const report::v1::Report& report() const { return built_.report; }
  [[nodiscard]] bool damaged() const { return built_.damaged; }
  [[nodiscard]] const std::map<uint32_t, Curve>& curves() const { return observer_.curves(); }
  [[nodiscard]] const std::vector<Mark>& marks() const { return observer_.marks(); }
  [[nodiscard]] const Blocks& blocks() const { return blocks_; }
  [[nodiscard]] const Kinds& kinds() const { return kinds_; }
  [[nodiscard]] const UsedStacks& stacks() const { return stacks_; }
  [[nodiscard]] const Strings& strings() const { return strings_; }
  // The instant that the report explains: where memory ran out, else the peak. kNever: nothing was allocated.
  [[nodiscard]] Tick ExplainedTick(uint32_t device) const;

 private:
  explicit ViewerData(report::BuiltReport built);
  [[nodiscard]] std::vector<Tick> Keyframes() const;
  [[nodiscard]] std::vector<Stretch> Details(Tick around) const;
  [[nodiscard]] nlohmann::ordered_json Header(const FileOptions& options, bool complete,
                                              const std::vector<Tick>& keyframes,
                                              const std::vector<Stretch>& details) const;

  report::BuiltReport built_;
  Strings strings_;
  UsedStacks stacks_;
  Kinds kinds_;
  Blocks blocks_;
  Observer observer_;
};

}  // namespace vramtrace::viewer_data
