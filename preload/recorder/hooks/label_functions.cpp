// Native functions of _vramtrace.native. They are called by our own modules only (preload/python), with the
// GIL held and with the arguments documented there; none raises.

#include "preload/recorder/hooks/label_functions.h"

#include <cstring>
#include <iterator>
#include <string_view>

#include "preload/python/embedded_sources.h"
#include "preload/python/python_host.h"
#include "preload/recorder/hooks/allocator_events.h"
#include "preload/recorder/hooks/autograd_position.h"
#include "preload/recorder/hooks/device_facts.h"
#include "preload/recorder/hooks/interpreter_check.h"
#include "preload/recorder/hooks/module_watch.h"
#include "preload/recorder/hooks/requested_sizes.h"
#include "preload/recorder/hooks/trace_session.h"
#include "preload/recorder/record/recorder.h"
#include "preload/recorder/stacks/hidden_code.h"
#include "preload/recorder/stacks/internals.h"
#include "preload/recorder/stacks/python_check.h"

namespace vramtrace::hooks {
namespace {

using python::Api;
using python::Object;

constexpr int kMaxDimensions = 16;

const Api& api() { return *python::FindPython(); }

// The arguments of one call.
class Arguments {
 public:
  Arguments(Object* const* values, long count) : values_(values), count_(count) {}

  [[nodiscard]] uint64_t Number(long i) const {
    return i < count_ ? python::AsUnsigned(api(), values_[i]) : 0;
  }
  [[nodiscard]] std::string_view Text(long i) const {
    size_t length = 0;
    const char* text = i < count_ ? python::AsText(api(), values_[i], &length) : nullptr;
    if (text == nullptr) api().PyErr_Clear();  // lone surrogates: no UTF-8
    return {text == nullptr ? "" : text, length};
  }
  [[nodiscard]] bool Truth(long i) const { return i < count_ && api().PyObject_IsTrue(values_[i]) == 1; }
  [[nodiscard]] Object* Get(long i) const { return i < count_ ? values_[i] : nullptr; }
  [[nodiscard]] long count() const { return count_; }

 private:
  Object* const* values_;
  long count_;
};

// A tensor's shape, from a tuple.
struct Shape {
  explicit Shape(Object* tuple) {
    const long size = tuple == nullptr ? 0 : api().PyTuple_Size(tuple);
    for (long i = 0; i < size && count < kMaxDimensions; ++i) {
      values[count++] = api().PyLong_AsLongLong(api().PyTuple_GetItem(tuple, i));
    }
    api().PyErr_Clear();
  }
  int64_t values[kMaxDimensions];
  int count = 0;
};

Object* None() { return python::None(api()); }
Object* Number(uint64_t value) { return api().PyLong_FromUnsignedLongLong(value); }

// label(kind, address, bytes, device, name, state_key, dtype, shape)
Object* Label(Object*, Object* const* values, long count) {
  const Arguments arguments(values, count);
  const Shape shape(arguments.Get(7));
  record::LabelEvent event;
  event.kind = static_cast<record::LabelKind>(arguments.Number(0));
  event.address = arguments.Number(1);
  event.bytes = arguments.Number(2);
  event.device = static_cast<uint32_t>(arguments.Number(3));
  event.name = arguments.Text(4);
  event.state_key = arguments.Text(5);
  event.dtype = arguments.Text(6);
  event.shape = shape.values;
  event.shape_count = shape.count;
  record::Labelled(event);
  return None();
}

// module(object, parent, path, class_name)
Object* Module(Object*, Object* const* values, long count) {
  const Arguments arguments(values, count);
  record::ModuleNamed(arguments.Number(0), arguments.Number(1), arguments.Text(2), arguments.Text(3));
  ModuleIsKnown(reinterpret_cast<const void*>(arguments.Number(0)));
  return None();
}

// forget(object)
Object* Forget(Object*, Object* const* values, long count) {
  ModuleIsGone(reinterpret_cast<const void*>(Arguments(values, count).Number(0)));
  return None();
}

// input(name, address, bytes, dtype, shape, step, on_device, module)
Object* Input(Object*, Object* const* values, long count) {
  const Arguments arguments(values, count);
  const Shape shape(arguments.Get(4));
  record::InputTensorEvent event;
  event.name = arguments.Text(0);
  event.address = arguments.Number(1);
  event.bytes = arguments.Number(2);
  event.dtype = arguments.Text(3);
  event.shape = shape.values;
  event.shape_count = shape.count;
  event.step = arguments.Number(5);
  event.on_device = arguments.Truth(6);
  event.module_object = arguments.Number(7);
  record::InputSeen(event);
  return None();
}

// step(number, end, optimizer class, optimizer object)
Object* Step(Object*, Object* const* values, long count) {
  const Arguments arguments(values, count);
  const bool end = arguments.Truth(1);
  record::StepMarked(arguments.Number(0), end, arguments.Text(2), arguments.Number(3));
  if (end && HasMetDevice()) QueryDeviceMemory(Family::kRuntime, nullptr, record::QueryReason::kStep);
  return None();
}

// phase(name, end)
Object* PhaseMark(Object*, Object* const* values, long count) {
  const Arguments arguments(values, count);
  record::PhaseMarked(arguments.Text(0), arguments.Truth(1));
  return None();
}

// expect_inputs(): the next forward is a new step's
Object* ExpectInputsCall(Object*, Object* const*, long) {
  ExpectInputs();
  return None();
}

// A row of the table of internals by its name, kCount if there is none.
stacks::Internal RowNamed(std::string_view name) {
  int i = 0;
  while (i < static_cast<int>(stacks::Internal::kCount) && name != stacks::NameOf(stacks::Internal{i})) ++i;
  return stacks::Internal{i};
}

// switched_off(name) -> int: VRAMTRACE_OFF lists the row
Object* SwitchedOff(Object*, Object* const* values, long count) {
  const auto row = RowNamed(Arguments(values, count).Text(0));
  return Number(row != stacks::Internal::kCount && stacks::SwitchedOff(row) ? 1 : 0);
}

// made_to_fail(name) -> int: VRAMTRACE_BREAK lists the row
Object* MadeToFail(Object*, Object* const* values, long count) {
  const auto row = RowNamed(Arguments(values, count).Text(0));
  return Number(row != stacks::Internal::kCount && stacks::MadeToFail(row) ? 1 : 0);
}

// feature(name, on, reason): a row of the table of internals, or any other name
Object* Feature(Object*, Object* const* values, long count) {
  const Arguments arguments(values, count);
  const auto row = RowNamed(arguments.Text(0));
  const std::string_view text = arguments.Text(2);
  if (row == stacks::Internal::kCount) {
    record::FeatureSet(arguments.Text(0), arguments.Truth(1), text);
    return None();
  }
  char reason[192] = "";
  std::memcpy(reason, text.data(), text.size() < sizeof reason ? text.size() : sizeof reason - 1);
  stacks::SetInternal(row, arguments.Truth(1), reason);
  return None();
}

// end_recording(): before the process leaves by os._exit
Object* EndRecording(Object*, Object* const*, long) {
  record::EndRecording();
  return None();
}

// torch_ready(version, code of Module._wrapped_call_impl)
Object* TorchReady(Object*, Object* const* values, long count) {
  const Arguments arguments(values, count);
  char version[64] = "";
  const std::string_view text = arguments.Text(0);
  std::memcpy(version, text.data(), text.size() < sizeof version ? text.size() : sizeof version - 1);
  LearnTorch(version);
  FindAutograd();
  WrapAllocator();
  return None();
}

// set_module_code(code or None): the frames whose first local is a module. The caller keeps the code alive.
Object* SetModuleCode(Object*, Object* const* values, long count) {
  Object* code = Arguments(values, count).Get(0);
  stacks::SetModuleCallCode(code == api().none ? nullptr : code);
  return None();
}

// current_module() -> int: the module of the innermost frame that has one, 0 if none
Object* CurrentModule(Object*, Object* const*, long) {
  stacks::PythonFrame frames[stacks::kMaxPythonFrames];
  bool truncated = false;
  const int count = stacks::CapturePythonFrames(frames, stacks::kMaxPythonFrames, &truncated);
  for (int i = 0; i < count; ++i) {
    if (frames[i].module_object != nullptr) {
      return Number(reinterpret_cast<uintptr_t>(frames[i].module_object));
    }
  }
  return Number(0);
}

// verify_nodes(node, sequence number, name, node, sequence number, name, ...) -> int. A Python node object
// (THPCppFunction) holds its C++ node directly behind the object's head.
Object* VerifyNodes(Object*, Object* const* values, long count) {
  constexpr long kMaxNodes = 4;
  constexpr size_t kObjectHead = 16;
  const Arguments arguments(values, count);
  const void* nodes[kMaxNodes];
  uint64_t numbers[kMaxNodes];
  const char* names[kMaxNodes];
  const long triples = count / 3 < kMaxNodes ? count / 3 : kMaxNodes;
  for (long i = 0; i < triples; ++i) {
    const char* object = reinterpret_cast<const char*>(arguments.Get(3 * i));
    std::memcpy(&nodes[i], object + kObjectHead, sizeof nodes[i]);
    numbers[i] = arguments.Number(3 * i + 1);
    names[i] = arguments.Text(3 * i + 2).data();
  }
  return Number(VerifyNodeLayout(nodes, numbers, names, static_cast<int>(triples)) ? 1 : 0);
}

// hide_code(code)
Object* HideCode(Object*, Object* const* values, long count) {
  stacks::HideCode(Arguments(values, count).Get(0));
  return None();
}

// set_callback(function): what a pending call runs. Asks for no more than that: see ask_for_labels.
Object* SetCallback(Object*, Object* const* values, long count) {
  python::SetPendingCallback(Arguments(values, count).Get(0));
  SetPendingCaller(&python::CallPending);
  return None();
}

// wait_for_torch(waiting)
Object* WaitForTorch(Object*, Object* const* values, long count) {
  const bool waiting = Arguments(values, count).Truth(0);
  python::SetWaiting(waiting);
  if (waiting) AskAtNextAllocation();
  return None();
}

// take_requests() -> int: bits of LabelRequest
Object* TakeRequests(Object*, Object* const*, long) { return Number(TakeLabelRequests()); }

// allocated(), peak_allocated(), peak_reserved() -> bytes of the caching allocator, all devices
Object* Allocated(Object*, Object* const*, long) { return Number(ReadAllocatorTotals().allocated); }
Object* PeakAllocated(Object*, Object* const*, long) { return Number(ReadAllocatorTotals().peak_allocated); }
Object* PeakReserved(Object*, Object* const*, long) { return Number(ReadAllocatorTotals().peak_reserved); }

// seen_evaluation() -> int: a module has allocated with gradients switched off
Object* SeenEvaluation(Object*, Object* const*, long) { return Number(HasSeenEvaluation() ? 1 : 0); }

// recording() -> int
Object* IsRecording(Object*, Object* const*, long) { return Number(record::Recording() ? 1 : 0); }

// query_memory(): at the process's end, while CUDA still answers
Object* QueryAtExit(Object*, Object* const*, long) {
  if (HasMetDevice()) QueryDeviceMemory(Family::kRuntime, nullptr, record::QueryReason::kExit);
  return None();
}

#define VRAMTRACE_NATIVE(name, function) \
  { name, &(function), python::kFastCall, nullptr }
const python::MethodDefinition kFunctions[] = {
    VRAMTRACE_NATIVE("label", Label),
    VRAMTRACE_NATIVE("module", Module),
    VRAMTRACE_NATIVE("forget", Forget),
    VRAMTRACE_NATIVE("input", Input),
    VRAMTRACE_NATIVE("step", Step),
    VRAMTRACE_NATIVE("phase", PhaseMark),
    VRAMTRACE_NATIVE("expect_inputs", ExpectInputsCall),
    VRAMTRACE_NATIVE("feature", Feature),
    VRAMTRACE_NATIVE("switched_off", SwitchedOff),
    VRAMTRACE_NATIVE("made_to_fail", MadeToFail),
    VRAMTRACE_NATIVE("end_recording", EndRecording),
    VRAMTRACE_NATIVE("torch_ready", TorchReady),
    VRAMTRACE_NATIVE("set_module_code", SetModuleCode),
    VRAMTRACE_NATIVE("current_module", CurrentModule),
    VRAMTRACE_NATIVE("verify_nodes", VerifyNodes),
    VRAMTRACE_NATIVE("hide_code", HideCode),
    VRAMTRACE_NATIVE("set_callback", SetCallback),
    VRAMTRACE_NATIVE("wait_for_torch", WaitForTorch),
    VRAMTRACE_NATIVE("take_requests", TakeRequests),
    VRAMTRACE_NATIVE("allocated", Allocated),
    VRAMTRACE_NATIVE("peak_allocated", PeakAllocated),
    VRAMTRACE_NATIVE("peak_reserved", PeakReserved),
    VRAMTRACE_NATIVE("seen_evaluation", SeenEvaluation),
    VRAMTRACE_NATIVE("recording", IsRecording),
    VRAMTRACE_NATIVE("query_at_exit", QueryAtExit),
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void StartPython() noexcept {
  static const python::Host host = {.functions = kFunctions,
                                    .sources = python::kEmbeddedSources,
                                    .source_count = python::kEmbeddedSourceCount,
                                    .interpreter_alive = &CheckInterpreter};
  (void)python::StartHost(host);
}

}  // namespace vramtrace::hooks
