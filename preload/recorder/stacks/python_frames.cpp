#include "preload/recorder/stacks/python_frames.h"

#include <dlfcn.h>

#include <atomic>
#include <bit>
#include <cstdio>
#include <cstring>

#include "preload/recorder/stacks/hidden_code.h"
#include "preload/recorder/stacks/internals.h"
#include "preload/recorder/stacks/python_check.h"
#include "preload/recorder/stacks/python_layout.h"

namespace vramtrace::stacks {
namespace {

struct Interpreter {
  const PythonLayout* layout = nullptr;
  void* (*thread_state)() = nullptr;
  int (*code_address_to_line)(void* code, int byte_offset) = nullptr;
  const void* code_type = nullptr;
};

Interpreter g_interpreter;
std::atomic<bool> g_enabled{false};
std::atomic<const void*> g_module_call_code{nullptr};

template <typename T>
T Read(const void* base, size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const char*>(base) + offset, sizeof value);
  return value;
}

const void* ReadPointer(const void* base, size_t offset) { return Read<const void*>(base, offset); }

const void* ReadReference(const PythonLayout& layout, const void* base, size_t offset) {
  return reinterpret_cast<const void*>(Read<uintptr_t>(base, offset) & ~uintptr_t{layout.tag_bits});
}

int32_t ByteOffset(const PythonLayout& layout, const void* frame, const void* code) {
  switch (layout.instruction_kind) {
    case InstructionKind::kByteIndex:
      return Read<int32_t>(frame, layout.instruction);
    case InstructionKind::kUnitIndex:
      return 2 * Read<int32_t>(frame, layout.instruction);
    case InstructionKind::kCodePointer:
      break;
  }
  const uintptr_t start = reinterpret_cast<uintptr_t>(code) + layout.code_start;
  return static_cast<int32_t>(Read<uintptr_t>(frame, layout.instruction) - start);
}

// The innermost frame of this thread, or nullptr.
const void* TopFrame(const PythonLayout& layout) {
  const void* thread = g_interpreter.thread_state();
  if (thread == nullptr) return nullptr;
  const void* frame = ReadPointer(thread, layout.thread_to_frame);
  if (layout.cframe_to_frame < 0 || frame == nullptr) return frame;
  return ReadPointer(frame, layout.cframe_to_frame);
}

int Walk(const Interpreter& interpreter, PythonFrame* frames, int capacity, bool* truncated, bool hide) {
  const PythonLayout& layout = *interpreter.layout;
  const void* module_call = g_module_call_code.load(std::memory_order_relaxed);
  int count = 0;
  *truncated = false;
  for (const void* frame = TopFrame(layout); frame != nullptr; frame = ReadPointer(frame, layout.previous)) {
    if (layout.owner >= 0 && Read<uint8_t>(frame, layout.owner) >= layout.owner_not_python) continue;
    const void* code = ReadReference(layout, frame, layout.code);
    // From 3.13 the slot may hold None or an executor.
    if (layout.minor >= 13 && ReadPointer(code, kObjectType) != interpreter.code_type) continue;
    if (hide && IsHiddenCode(code)) continue;
    if (count == capacity) {
      *truncated = true;
      break;
    }
    PythonFrame& out = frames[count++];
    out.code = code;
    out.byte_offset = ByteOffset(layout, frame, code);
    out.module_object = code == module_call ? ReadReference(layout, frame, layout.locals) : nullptr;
  }
  return count;
}

// Appends one code point as UTF-8; false when it does not fit.
bool AppendUtf8(char* out, size_t size, size_t* used, uint32_t point) {
  char bytes[4];
  size_t count = 0;
  if (point < 0x80) {
    bytes[count++] = static_cast<char>(point);
  } else if (point < 0x800) {
    bytes[count++] = static_cast<char>(0xc0 | (point >> 6));
    bytes[count++] = static_cast<char>(0x80 | (point & 0x3f));
  } else if (point < 0x10000) {
    if (point >= 0xd800 && point < 0xe000) point = 0xfffd;  // a lone surrogate is no UTF-8
    bytes[count++] = static_cast<char>(0xe0 | (point >> 12));
    bytes[count++] = static_cast<char>(0x80 | ((point >> 6) & 0x3f));
    bytes[count++] = static_cast<char>(0x80 | (point & 0x3f));
  } else {
    bytes[count++] = static_cast<char>(0xf0 | (point >> 18));
    bytes[count++] = static_cast<char>(0x80 | ((point >> 12) & 0x3f));
    bytes[count++] = static_cast<char>(0x80 | ((point >> 6) & 0x3f));
    bytes[count++] = static_cast<char>(0x80 | (point & 0x3f));
  }
  if (*used + count >= size) return false;
  std::memcpy(out + *used, bytes, count);
  *used += count;
  return true;
}

// Copies a str object. The state word: kind (1, 2, 4 bytes a character) in bits 2-4, compact in bit 5, ascii
// in bit 6. Names in code objects are always compact.
bool CopyString(const PythonLayout& layout, const void* text, char* out, size_t size) {
  out[0] = '\0';
  if (text == nullptr) return false;
  const uint32_t state = Read<uint32_t>(text, kStringState);
  const uint32_t width = (state >> 2) & 7;
  if ((state & 0x20) == 0 || (width != 1 && width != 2 && width != 4)) return false;
  const size_t length = Read<size_t>(text, kStringLength);
  const char* data = static_cast<const char*>(text) +
                     ((state & 0x40) != 0 ? layout.string_ascii_data : layout.string_compact_data);
  size_t used = 0;
  for (size_t i = 0; i < length; ++i) {
    const uint32_t point = width == 1   ? Read<uint8_t>(data, i)
                           : width == 2 ? Read<uint16_t>(data, 2 * i)
                                        : Read<uint32_t>(data, 4 * i);
    if (!AppendUtf8(out, size, &used, point)) break;
  }
  out[used] = '\0';
  return true;
}

template <typename Function>
bool Find(Function* function, const char* symbol) {
  *function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, symbol));
  return *function != nullptr;
}

}  // namespace

bool FindPythonInterpreter(PythonVerdict* verdict) noexcept {
  const char* (*version)() = nullptr;
  if (!Find(&version, "Py_GetVersion")) {
    std::snprintf(verdict->reason, sizeof verdict->reason, "no Python in this process");
    return false;
  }
  const char* text = version();
  int major = 0;
  int minor = 0;
  if (std::sscanf(text, "%d.%d", &major, &minor) != 2) major = 0;
  std::snprintf(verdict->version, sizeof verdict->version, "%.*s", static_cast<int>(std::strcspn(text, " ")),
                text);
  if (std::strstr(text, "free-threading") != nullptr) {
    std::snprintf(verdict->reason, sizeof verdict->reason, "free-threaded build of CPython %s",
                  verdict->version);
    return false;
  }
  const PythonLayout* layout = major == 3 ? FindPythonLayout(minor) : nullptr;
  if (layout == nullptr || std::strstr(text, "PyPy") != nullptr) {
    std::snprintf(verdict->reason, sizeof verdict->reason, "unknown Python version %s (known: 3.%d to 3.%d)",
                  verdict->version, kPythonLayouts[0].minor, std::end(kPythonLayouts)[-1].minor);
    return false;
  }
  Interpreter found;
  found.layout = layout;
  found.code_type = dlsym(RTLD_DEFAULT, "PyCode_Type");
  if (!Find(&found.thread_state, "PyGILState_GetThisThreadState") ||
      !Find(&found.code_address_to_line, "PyCode_Addr2Line") || found.code_type == nullptr) {
    std::snprintf(verdict->reason, sizeof verdict->reason, "CPython %s does not export what is needed",
                  verdict->version);
    return false;
  }
  g_interpreter = found;
  return true;
}

bool CheckPythonFrames(const ExpectedFrame* expected, int count, PythonVerdict* verdict) noexcept {
  if (g_interpreter.layout == nullptr) return false;
  PythonFrame frames[kMaxPythonFrames];
  bool truncated = false;
  const int walked = Walk(g_interpreter, frames, kMaxPythonFrames, &truncated, /*hide=*/false);
  if (MadeToFail(Internal::kPythonFrames) && walked > 0) frames[0].byte_offset += 2;
  if (walked != count && !truncated) {
    std::snprintf(verdict->reason, sizeof verdict->reason, "the walk found %d frames, the interpreter has %d",
                  walked, count);
    return false;
  }
  for (int i = 0; i < walked && i < count; ++i) {
    CodeText text;
    const bool same = frames[i].code == expected[i].code &&
                      frames[i].byte_offset == expected[i].byte_offset &&
                      DescribeCode(frames[i].code, &text) && std::strcmp(text.file, expected[i].file) == 0 &&
                      std::strcmp(text.qualified_name, expected[i].qualified_name) == 0 &&
                      text.first_line == expected[i].first_line &&
                      LineOfCode(frames[i].code, frames[i].byte_offset) == expected[i].line;
    if (same) continue;
    std::snprintf(verdict->reason, sizeof verdict->reason, "frame %d is not what the interpreter says", i);
    return false;
  }
  std::snprintf(verdict->reason, sizeof verdict->reason, "checked against %d frames of CPython %s", count,
                verdict->version);
  g_enabled.store(true, std::memory_order_release);
  return true;
}

void DisablePythonFrames() noexcept { g_enabled.store(false, std::memory_order_release); }

void SetModuleCallCode(const void* code) noexcept {
  g_module_call_code.store(code, std::memory_order_relaxed);
}

int CapturePythonFrames(PythonFrame* frames, int capacity, bool* truncated) noexcept {
  *truncated = false;
  if (!g_enabled.load(std::memory_order_acquire)) return 0;
  return Walk(g_interpreter, frames, capacity, truncated, /*hide=*/true);
}

// Once a frame of every event: one multiplication. The caller mixes it into a stronger key.
uint64_t CodeFingerprint(const void* code) noexcept {
  if (g_interpreter.layout == nullptr) return 0;
  const PythonLayout& layout = *g_interpreter.layout;
  const uint64_t name = std::rotl(Read<uint64_t>(code, layout.code_name), 21);
  const uint64_t lines = std::rotl(Read<uint64_t>(code, layout.code_line_table), 42);
  const uint64_t texts = Read<uint64_t>(code, layout.code_filename) ^ name ^ lines;
  return (texts ^ Read<uint32_t>(code, layout.code_first_line)) * 0x9e3779b97f4a7c15;
}

bool DescribeCode(const void* code, CodeText* text) noexcept {
  text->file[0] = text->qualified_name[0] = '\0';
  text->first_line = 0;
  if (g_interpreter.layout == nullptr || ReadPointer(code, kObjectType) != g_interpreter.code_type)
    return false;
  const PythonLayout& layout = *g_interpreter.layout;
  text->first_line = Read<uint32_t>(code, layout.code_first_line);
  return CopyString(layout, ReadPointer(code, layout.code_filename), text->file, sizeof text->file) &&
         CopyString(layout, ReadPointer(code, layout.code_qualified_name), text->qualified_name,
                    sizeof text->qualified_name);
}

uint32_t LineOfCode(const void* code, int32_t byte_offset) noexcept {
  if (g_interpreter.layout == nullptr) return 0;
  const int line = g_interpreter.code_address_to_line(const_cast<void*>(code), byte_offset);
  return line > 0 ? static_cast<uint32_t>(line) : 0;
}

}  // namespace vramtrace::stacks
