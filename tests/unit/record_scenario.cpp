#include "tests/unit/record_scenario.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace vramtrace::tests {
namespace {

constexpr int kFailedInChild = 99;
constexpr size_t kCodes = 4096;
// Code objects are addresses in here.
alignas(16) std::array<std::array<char, 16>, kCodes> code_objects;
std::array<std::atomic<uint64_t>, kCodes> fingerprints;

size_t CodeNumber(const void* code) {
  return static_cast<size_t>(static_cast<const char*>(code) - code_objects[0].data()) /
         sizeof(code_objects[0]);
}

}  // namespace
}  // namespace vramtrace::tests

// Stand-ins for preload/recorder/stacks.
namespace vramtrace::stacks {

uint64_t CodeFingerprint(const void* code) noexcept {
  return tests::fingerprints[tests::CodeNumber(code)].load(std::memory_order_relaxed);
}

bool DescribeCode(const void* code, CodeText* text) noexcept {
  const size_t number = tests::CodeNumber(code);
  const auto version = static_cast<unsigned long long>(CodeFingerprint(code));
  snprintf(text->file, sizeof(text->file), "/src/m%zu.py", number);
  snprintf(text->qualified_name, sizeof(text->qualified_name), version == 0 ? "f%zu" : "f%zu_%llu", number,
           version);
  text->first_line = static_cast<uint32_t>(number);
  return true;
}

uint32_t LineOfCode(const void*, int32_t byte_offset) noexcept {
  return static_cast<uint32_t>(byte_offset / 2);
}

}  // namespace vramtrace::stacks

namespace vramtrace::tests {

Scenario::Scenario() {
  std::string pattern = testing::TempDir() + "vramtrace-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) std::abort();
  folder_ = pattern;
}

Scenario::~Scenario() { std::filesystem::remove_all(folder_); }

pid_t Scenario::Start(const std::function<void()>& body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child != 0) return child;
  const int standard_error =
      open((folder_ + "/stderr").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  dup2(standard_error, STDERR_FILENO);
  if (chdir(folder_.c_str()) != 0) _exit(120);
  body();
  // An expectation that failed in here is the parent's business.
  std::exit(testing::Test::HasFailure() ? kFailedInChild : 0);
}

ScenarioResult Scenario::Wait(pid_t child) {
  ScenarioResult result;
  int status = 0;
  if (waitpid(child, &status, 0) != child) return result;
  result.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  EXPECT_NE(result.exit_status, kFailedInChild) << "an expectation in the child failed, see above";
  result.standard_error = ReadFileBytes(folder_ + "/stderr");
  result.traces = Traces();
  return result;
}

ScenarioResult Scenario::Run(const std::function<void()>& body) { return Wait(Start(body)); }

std::vector<std::string> Scenario::Traces() const {
  std::vector<std::string> traces;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
    if (entry.path().extension() == ".vtrace") traces.push_back(entry.path().string());
  }
  std::sort(traces.begin(), traces.end());
  return traces;
}

ReadTrace ReadOnlyTrace(const ScenarioResult& result) {
  EXPECT_EQ(result.traces.size(), 1U) << result.standard_error;
  if (result.traces.size() != 1) return {};
  ReadTrace trace = ReadTraceBytes(ReadFileBytes(result.traces[0]));
  EXPECT_THAT(trace.faults, testing::IsEmpty());
  EXPECT_THAT(CheckReferences(trace), testing::IsEmpty());
  return trace;
}

FakeStack::FakeStack(int depth, int code) {
  for (int i = 0; i < depth; ++i) {
    frames_.push_back(
        {code_objects[static_cast<size_t>(code) + static_cast<size_t>(i)].data(), 2 * (100 + i), nullptr});
  }
}

record::CapturedStack FakeStack::Captured() const {
  return {.python = frames_.data(),
          .python_count = static_cast<int>(frames_.size()),
          .python_truncated = false,
          .native = native_.data(),
          .native_count = static_cast<int>(native_.size())};
}

void SetFingerprint(int code, uint64_t fingerprint) { fingerprints[static_cast<size_t>(code)] = fingerprint; }

std::string TextOf(const ReadTrace& trace, uint32_t id) {
  if (id == 0) return "";
  for (const ReadPacket* packet : trace.Of(v1::Packet::kString)) {
    if (packet->packet.string().id() == id) return packet->packet.string().text();
  }
  return "?";
}

std::string StackText(const ReadTrace& trace, uint32_t stack) {
  std::map<uint32_t, const v1::Stack*> stacks;
  std::map<uint32_t, const v1::Frame*> frames;
  std::map<uint32_t, const v1::Code*> codes;
  std::map<uint32_t, const v1::Binary*> binaries;
  for (const ReadPacket& read : trace.packets) {
    const v1::Packet& p = read.packet;
    if (p.has_stack()) stacks[p.stack().id()] = &p.stack();
    if (p.has_frame()) frames[p.frame().id()] = &p.frame();
    if (p.has_code()) codes[p.code().id()] = &p.code();
    if (p.has_binary()) binaries[p.binary().id()] = &p.binary();
  }
  std::string text;
  for (; stack != 0; stack = stacks.at(stack)->parent()) {
    const v1::Frame& frame = *frames.at(stacks.at(stack)->frame());
    if (!text.empty()) text += " < ";
    if (frame.pc() != 0) {
      const std::string path = frame.binary() == 0 ? "?" : TextOf(trace, binaries.at(frame.binary())->path());
      text += "+" + std::filesystem::path(path).filename().string();
    } else {
      text += TextOf(trace, codes.at(frame.code())->qualified_name()) + ":" + std::to_string(frame.line());
      if (frame.module_object() != 0) text += "@" + std::to_string(frame.module_object());
    }
  }
  return text;
}

record::BlockEvent Block(uint64_t n) {
  return {.device = 0,
          .address = 0x7f0000000000 + n * 512,
          .bytes = 512 * (n % 7 + 1),
          .requested = 500,
          .allocated_total = n * 512,
          .reserved_total = 2 << 20,
          .autograd = {}};
}

}  // namespace vramtrace::tests
