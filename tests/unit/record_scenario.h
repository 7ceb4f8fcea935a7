#pragma once
// Runs a piece of a program under the recorder: in a child process and a folder of its own, so that each test
// has a fresh recorder and the test's process never opens one.

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "preload/recorder/record/recorder.h"
#include "tests/unit/trace_reading.h"

namespace vramtrace::tests {

struct ScenarioResult {
  int exit_status = -1;  // minus the signal's number where one ended it
  std::string standard_error;
  std::vector<std::string> traces;  // paths, sorted
};

class Scenario {
 public:
  Scenario();
  ~Scenario();
  Scenario(const Scenario&) = delete;
  Scenario& operator=(const Scenario&) = delete;

  // The child's environment and limits are set in `body` itself, before the recorder is used. It leaves with
  // exit(0), so that the recorder ends in order, unless `body` does something else.
  ScenarioResult Run(const std::function<void()>& body);

  // The same in two halves, for a parent that acts in between.
  pid_t Start(const std::function<void()>& body);
  ScenarioResult Wait(pid_t child);

  [[nodiscard]] const std::string& Folder() const { return folder_; }
  [[nodiscard]] std::vector<std::string> Traces() const;

 private:
  std::string folder_;
};

// Reads the one trace that there must be, and checks its references.
[[nodiscard]] ReadTrace ReadOnlyTrace(const ScenarioResult& result);

// A stack of `depth` Python frames; frame i (0 innermost) executes code object `code` + i. The stand-ins for
// preload/recorder/stacks describe code object n as function "f<n>" in "/src/m<n>.py", line = byte offset
// / 2.
class FakeStack {
 public:
  explicit FakeStack(int depth, int code = 0);
  [[nodiscard]] record::CapturedStack Captured() const;
  [[nodiscard]] stacks::PythonFrame& Frame(int i) { return frames_[static_cast<size_t>(i)]; }
  void SetNative(std::vector<void*> pcs) { native_ = std::move(pcs); }

 private:
  std::vector<stacks::PythonFrame> frames_;
  std::vector<void*> native_;
};

// What the stand-in says a code object's identity is; another value is another object at the same address.
void SetFingerprint(int code, uint64_t fingerprint);

// "f0:5 < f1:7 < ...": functions and lines of a Stack of the trace, innermost first; native frames as
// "+file".
[[nodiscard]] std::string StackText(const ReadTrace& trace, uint32_t stack);
[[nodiscard]] std::string TextOf(const ReadTrace& trace, uint32_t id);

// A block event with recognisable values.
[[nodiscard]] record::BlockEvent Block(uint64_t n);

}  // namespace vramtrace::tests
