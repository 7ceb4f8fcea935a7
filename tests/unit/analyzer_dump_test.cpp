#include <gmock/gmock.h>

#include <set>

#include "analyzer/report/dump.h"
#include "preload/trace/vramtrace.pb.h"
#include "tests/unit/analyzer_files.h"

namespace vramtrace::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TraceBuilder;
constexpr uint64_t kBase = TraceBuilder::kBaseAddress;

class DumpTest : public testing::FileTest {
 protected:
  std::vector<std::string> Lines(TraceBuilder* builder) {
    std::vector<std::string> lines;
    const auto dumped = DumpTrace(Write(builder), [&](std::string_view line) { lines.emplace_back(line); });
    EXPECT_TRUE(dumped.ok());
    return lines;
  }
};

TEST_F(DumpTest, OneLineAPacketWithAddressesAndTexts) {
  TraceBuilder builder;
  builder.DriverAllocate(kBase, 2 << 20);
  builder.Allocate({.address = kBase + 512, .bytes = 1024, .requested = 1000, .autograd = {5, "Node", 2}});
  EXPECT_THAT(
      Lines(&builder),
      ElementsAre("- +0.000000 t0 string id=1 text=\"cudaMalloc\"",
                  "- +0.000000 t0 string id=2 text=\"libc10_cuda.so\"",
                  "- +0.000000 t0 string id=3 text=\"Node\"",
                  "1 +0.000001 t1 driver_allocate address=0x7f0000000000 bytes=2097152 "
                  "function=\"cudaMalloc\" caller=\"libc10_cuda.so\"",
                  "2 +0.000002 t1 block_allocate address=0x7f0000000200 bytes=1024 requested=1000 "
                  "autograd.sequence_number=5 autograd.operator_name=\"Node\" autograd.node_thread=2"));
}

TEST_F(DumpTest, HostileTextStaysOnItsLine) {
  TraceBuilder builder;
  builder.String("two\nlines \"quoted\" \x1b[31m");
  EXPECT_THAT(Lines(&builder),
              ElementsAre("- +0.000000 t0 string id=1 text=\"two\\x0alines \\\"quoted\\\" \\x1b[31m\""));
}

// Every kind of packet that the format has, filled in, comes out under its own name.
TEST_F(DumpTest, EveryKindOfPacketHasALine) {
  const auto* body = vramtrace::v1::Packet::descriptor()->FindOneofByName("body");
  TraceBuilder builder;
  std::set<std::string> expected;
  for (int i = 0; i < body->field_count(); ++i) {
    vramtrace::v1::Packet packet;
    packet.GetReflection()->MutableMessage(&packet, body->field(i));
    builder.Add(packet, false);
    expected.insert(body->field(i)->name());
  }
  std::set<std::string> seen;
  for (const std::string& line : Lines(&builder)) {
    const size_t thread = line.find(" t1 ");
    ASSERT_NE(thread, std::string::npos) << line;
    seen.insert(line.substr(thread + 4, line.find(' ', thread + 4) - thread - 4));
  }
  EXPECT_EQ(seen, expected);
}

}  // namespace
}  // namespace vramtrace::report
