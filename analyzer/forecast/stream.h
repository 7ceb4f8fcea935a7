#pragma once
// A recorded run as a stream of requests to PyTorch's caching allocator, in the form in which a forecast
// edits it: transform the stream, then replay it (replay.h).

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/allocator/units.h"
#include "analyzer/allocator/versions.h"
#include "analyzer/attribution/verdict.h"
#include "analyzer/model/phase.h"

namespace vramtrace::forecast {

using allocator::Bytes;
using attribution::Confidence;
using attribution::MemoryClass;
using model::Phase;

// Places in the vectors of a Stream.
enum class RequestId : uint32_t { kNone = UINT32_MAX };
enum class SiteId : uint32_t { kNone = UINT32_MAX };
enum class ParameterId : uint32_t { kNone = UINT32_MAX };

// Why a size is thought to follow its law.
enum class LawBasis : uint8_t {
  kFixed,     // it cannot depend on the batch: labelled, of the optimizer, of a weight's size, a workspace
  kMeasured,  // two recordings with different batches
  kRule,      // one recording: what is not fixed and divides by the batch is proportional to it
  kUnknown,   // one recording, and the size does not divide by the batch: kept as it is
};

// Bytes of one request at any batch b: (fixed + slope * b + square * b * b) / divisor, rounded up, never
// below zero. `square` is for contrastive losses, which compare every sample with every other.
//
// `most`, where it is not 0, is where a reduction's buffer stops growing, because the card holds no more
// blocks of threads at once; only when each thread has sixteen times its share does it grow on, by a
// sixteenth (reductions.h).
struct SizeLaw {
  int64_t fixed = 0;
  int64_t slope = 0;
  int64_t square = 0;
  uint64_t divisor = 1;
  LawBasis basis = LawBasis::kUnknown;
  Bytes most = 0;

  [[nodiscard]] Bytes At(uint64_t batch) const;
  // The law of numerator / denominator times the size.
  [[nodiscard]] SizeLaw Times(uint64_t numerator, uint64_t denominator) const;
  [[nodiscard]] static SizeLaw Fixed(Bytes bytes, LawBasis basis = LawBasis::kFixed);
};

// A place in the program that asks for memory. `key` is equal in two recordings of one program: it is made of
// the phase, the frames (file, line, function, module path) and, in backward, of the operator and the
// forward's module.
struct Site {
  uint64_t key = 0;
  Phase phase = Phase::kScript;
  bool has_module = false;
  std::string module_path;  // in backward: of the forward that made the running node
  std::string module_class;
  std::string operator_name;  // of the running autograd node: "AddmmBackward0"; empty in forward
  std::string text;           // for people: "modeling_gpt2.py:698 (forward)"
};

// A parameter of a module, from the labels.
struct Parameter {
  std::string name;         // "transformer.h.0.mlp.c_fc.weight"; the first of its names where it is tied
  std::string module_path;  // "transformer.h.0.mlp.c_fc"
  Bytes bytes = 0;
  uint32_t element_size = 0;  // bytes, from its dtype; 0: not known
  std::string dtype;          // "float32"
  std::vector<int64_t> shape;
  bool trained = false;  // a gradient or optimizer state of it was seen
  [[nodiscard]] uint64_t elements() const { return element_size == 0 ? 0 : bytes / element_size; }
};

// A module that the recorder knows, called or not.
struct Module {
  std::string path;
  std::string class_name;
};

struct Request {
  Bytes bytes = 0;  // as asked for, before the allocator rounds
  SizeLaw law;
  SiteId site = SiteId::kNone;
  uint32_t step = 0;
  uint32_t ordinal = 0;  // the how many-th of its site in its step, from 0
  MemoryClass memory_class = MemoryClass::kUnknown;
  Confidence confidence = Confidence::kLow;
  // Whose weight, gradient, optimizer state or autocast copy it is.
  ParameterId parameter = ParameterId::kNone;
  bool is_copy = false;    // an autocast copy of `parameter`
  bool saved = false;      // allocated in forward, and alive when backward followed
  uint16_t state_key = 0;  // place in Stream::state_keys: "exp_avg"; 0: none
  uint64_t autograd_number =
      0;  // forward: what the next node will get; backward: the running node's; 0: none
};

enum class EventKind : uint8_t { kAllocate, kFree, kStepEnd };

struct Event {
  EventKind kind = EventKind::kStepEnd;
  Phase phase = Phase::kScript;  // that the program was in
  RequestId request = RequestId::kNone;
};

struct Input {
  std::string name;
  std::vector<int64_t> shape;
  std::string dtype;
};

// What is known of the run that the stream was recorded from.
struct RunFacts {
  std::string trace;  // path
  uint32_t device = 0;
  std::string gpu;  // as the device called itself
  bool simulated = false;
  Bytes total = 0;  // of the device
  // Device used less what the caching allocator held, at its highest: context, code, other libraries.
  Bytes elsewhere = 0;
  Bytes context = 0;         // of it: what the device held when the context had just come; 0: not known
  Bytes peak_allocated = 0;  // recorded
  Bytes peak_reserved = 0;
  Bytes peak_used = 0;  // 0: the device was never asked
  uint64_t batch = 0;   // first dimension that most inputs share; 0: not known
  std::vector<Input> inputs;
  allocator::PyTorchVersion pytorch;
  std::string allocator_settings;       // PYTORCH_CUDA_ALLOC_CONF, or PYTORCH_ALLOC_CONF
  std::vector<std::string> optimizers;  // class names
  std::vector<std::string> command;
  uint64_t steps = 0;  // completed
  bool ended_out_of_memory = false;
  // The stream holds every phase that the run comes to, so that a verdict can be given. Not so for a run that
  // died before a whole step with the optimizer's state in place.
  bool whole = true;
  bool step_finished = false;  // the step that died was finished after the one before it (unfinished_step.h)
  bool lost_events = false;
  // Of a run whose trace was kept below a limit: the steps that were recorded; `steps` is how many at its
  // front are whole, which is what the stream is of. 0: all.
  uint64_t steps_recorded = 0;
  uint64_t requests_without_size = 0;  // whose block size stands for the size asked for
};

struct Stream {
  RunFacts facts;
  uint64_t batch = 0;  // that `Request::bytes` hold for
  std::vector<Site> sites;
  std::vector<Parameter> parameters;
  std::vector<Module> modules;  // by the event that named them: a parent before its children
  std::vector<std::string> state_keys{std::string()};
  std::vector<Request> requests;
  std::vector<Event> events;
  // Steps that were left out because they repeat the two before them, event for event.
  uint64_t repeated_steps = 0;

  [[nodiscard]] const Request& operator[](RequestId id) const { return requests[static_cast<uint32_t>(id)]; }
  [[nodiscard]] Request& operator[](RequestId id) { return requests[static_cast<uint32_t>(id)]; }
  [[nodiscard]] const Site& operator[](SiteId id) const { return sites[static_cast<uint32_t>(id)]; }
  [[nodiscard]] const Parameter& operator[](ParameterId id) const {
    return parameters[static_cast<uint32_t>(id)];
  }
  [[nodiscard]] const Site& SiteOf(const Request& request) const { return (*this)[request.site]; }
};

// `path` is `prefix` or lies below it: "h.1.mlp" below "h.1", not below "h".. of "h1".
[[nodiscard]] bool IsBelow(std::string_view path, std::string_view prefix);

// Sets every request to its law at `batch`.
[[nodiscard]] Stream AtBatch(Stream stream, uint64_t batch);

}  // namespace vramtrace::forecast
