#pragma once
// What a trace tells about time and memory while it is written. Fed event by event (trace::TraceTail); memory
// is the live blocks and a row a step.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyzer/trace/event.h"

namespace vramtrace::watch {

// Bytes of live blocks by what the program's own objects call them; the rest of `allocated` has no label:
// activations, temporaries, inputs that no module was given.
struct LiveClasses {
  uint64_t weights = 0;
  uint64_t gradients = 0;
  uint64_t optimizer = 0;
  uint64_t other = 0;
};

struct CardMemory {
  std::string uuid;
  uint64_t total = 0;
  uint64_t used = 0;  // of the device, as it last answered
  uint64_t used_most = 0;
  uint64_t allocated = 0;
  uint64_t reserved = 0;
};

// A training step: from the end of the one before it to its own end.
struct StepTime {
  double seconds = 0;
  double data = 0;       // waiting for a DataLoader
  double allocator = 0;  // inside the driver's allocation functions
  uint32_t blocks = 0;   // handed out by the caching allocator
  uint64_t block_bytes = 0;
  uint32_t retries = 0;  // requests that the driver refused; PyTorch then empties its cache and asks again
  uint64_t batch = 0;    // first dimension of the first input; 0: not known
  uint64_t input_bytes = 0;
};

// What an iterator of the DataLoader says of itself.
struct Loader {
  bool seen = false;
  int workers = 0;
  bool pinned = false;
  uint64_t batch = 0;
  uint64_t length = 0;   // batches an epoch; 0: not known
  uint64_t batches = 0;  // of the epoch that is running
  uint64_t epochs = 0;   // begun
};

class TraceFacts {
 public:
  void Add(const trace::Event& event);

  [[nodiscard]] uint32_t pid() const { return pid_; }
  [[nodiscard]] bool simulated() const { return simulated_; }
  [[nodiscard]] uint32_t world_size() const { return world_size_; }
  [[nodiscard]] const std::map<uint32_t, CardMemory>& cards() const { return cards_; }
  [[nodiscard]] const LiveClasses& classes() const { return classes_; }
  // Steps whose beginning was seen: the first one's was not.
  [[nodiscard]] const std::vector<StepTime>& steps() const { return steps_; }
  [[nodiscard]] uint64_t completed() const { return completed_; }  // the first one too
  [[nodiscard]] const Loader& loader() const { return loader_; }
  [[nodiscard]] uint64_t pinned_bytes() const { return pinned_bytes_; }  // host memory, ever pinned
  [[nodiscard]] uint64_t retries() const { return retries_; }
  [[nodiscard]] bool out_of_memory() const { return out_of_memory_; }

 private:
  struct Block {
    uint64_t bytes = 0;
    int kind = 0;  // Label::Kind
  };
  void AddBlock(const trace::Event& event);
  void RemoveBlock(const trace::Event& event);
  void AddLabel(const trace::Event& event);
  void AddStep(const trace::Event& event);
  void AddData(const trace::Event& event);
  void AddInput(const trace::Event& event);
  void AddProcess(const trace::Event& event);
  void AddQuery(const trace::Event& event);
  void AddDriverCall(const trace::Event& event);
  [[nodiscard]] uint64_t* ClassOf(int kind);
  [[nodiscard]] std::string_view Text(uint32_t id) const;

  uint32_t pid_ = 0;
  uint32_t world_size_ = 0;
  bool simulated_ = false;
  bool out_of_memory_ = false;
  std::map<uint32_t, CardMemory> cards_;
  LiveClasses classes_;
  std::unordered_map<uint64_t, Block> blocks_;
  std::unordered_map<uint32_t, std::string> strings_;
  std::vector<StepTime> steps_;
  StepTime step_;                        // the one that is running
  std::optional<uint64_t> step_began_;   // nanoseconds
  std::optional<uint64_t> step_number_;  // of the last step that ended
  uint64_t completed_ = 0;
  std::optional<uint64_t> data_began_;
  Loader loader_;
  uint64_t pinned_bytes_ = 0;
  uint64_t retries_ = 0;
};

}  // namespace vramtrace::watch
