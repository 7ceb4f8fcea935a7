// The encoder writes by hand what libprotobuf reads: this proves that both agree, for every message and every
// field of vramtrace.proto.

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "preload/trace/chunk_reader.h"
#include "preload/trace/encoder.h"
#include "preload/trace/vramtrace.pb.h"

namespace vramtrace::trace {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr PacketStamp kStamp{.sequence_delta = 3, .time_delta_ns = 70000};
constexpr uint64_t kHuge = 0xFEDCBA9876543210U;
constexpr int64_t kShape[] = {8, 512, -1, int64_t{1} << 40};
constexpr std::string_view kArguments[] = {"python", "", "train.py"};
constexpr std::string_view kEnvironment[] = {"CUDA_VISIBLE_DEVICES=0"};
constexpr AutogradFields kAutograd{.sequence_number = 41, .operator_name = 42, .node_thread = 43};

struct Case {
  std::string text;  // the packet without its stamp, as libprotobuf's text format
  std::function<std::span<const std::byte>(std::span<std::byte>)> encode;
};

template <typename Body>
Case MakeCase(std::string text, const Body& body) {
  return {std::move(text),
          [body](std::span<std::byte> buffer) { return EncodePacket(kStamp, body, buffer); }};
}

// One row a message; each sets every field to a value of its own.
std::vector<Case> Cases() {
  return {
      MakeCase("block_allocate { address_delta: -5 bytes: 512 requested: 400 stack: 7 device: 1 thread: 2 "
               "autograd { "
               "sequence_number: 41 operator_name: 42 node_thread: 43 } allocated_total: 1024 "
               "reserved_total: 2097152 }",
               BlockAllocatePacket{-5, 512, 400, 7, 1, 2, kAutograd, 1024, 2097152}),
      MakeCase(
          "block_free { address_delta: 9223372036854775807 bytes: 512 stack: 7 device: 1 autograd { "
          "sequence_number: 41 operator_name: 42 node_thread: 43 } allocated_total: 3 reserved_total: 4 }",
          BlockFreePacket{INT64_MAX, 512, 7, 1, kAutograd, 3, 4}),
      MakeCase(
          "driver_allocate { address_delta: -9223372036854775808 bytes: 1 stack: 2 device: 3 kind: "
          "MEMORY_KIND_ARRAY function: 4 caller: 6 result: 7 stream: 18364758544493064720 duration_ns: 9 }",
          DriverAllocatePacket{INT64_MIN, 1, 2, 3, 5, 4, 6, 7, kHuge, 9}),
      MakeCase(
          "driver_free { address_delta: 1 stack: 2 device: 3 kind: MEMORY_KIND_POOL function: 4 caller: 5 "
          "result: 6 stream: 7 }",
          DriverFreePacket{1, 2, 3, 2, 4, 5, 6, 7}),
      MakeCase("memory_query { device: 1 free_bytes: 2 total_bytes: 3 reason: REASON_STEP }",
               MemoryQueryPacket{1, 2, 3, 4}),
      MakeCase("string { id: 4294967295 text: \"transformer.h.0\" }",
               StringPacket{UINT32_MAX, "transformer.h.0"}),
      MakeCase("code { id: 1 file: 2 qualified_name: 3 first_line: 4 }", CodePacket{1, 2, 3, 4}),
      MakeCase("frame { id: 1 code: 2 line: 3 module_object: 4 pc: 5 binary: 6 }",
               FramePacket{1, 2, 3, 4, 5, 6}),
      MakeCase("stack { id: 3 parent: 2 frame: 1 }", StackPacket{3, 2, 1}),
      MakeCase("label { address_delta: -1 bytes: 2 kind: KIND_GRADIENT name: 4 state_key: 5 dtype: 6 shape: "
               "8 shape: "
               "512 shape: -1 shape: 1099511627776 device: 7 }",
               LabelPacket{-1, 2, 3, 4, 5, 6, kShape, 7}),
      MakeCase("module { object: 1 path: 2 class_name: 3 parent: 4 }", ModulePacket{1, 2, 3, 4}),
      MakeCase("step { number: 1 edge: EDGE_OPTIMIZER_END optimizer: 2 optimizer_object: 3 }",
               StepPacket{1, 1, 2, 3}),
      MakeCase("phase { name: 1 end: true }", PhaseMarkPacket{1, true}),
      MakeCase(
          "out_of_memory { requested: 1 allocated_total: 2 reserved_total: 3 device: 4 stack: 5 autograd { "
          "sequence_number: 41 operator_name: 42 node_thread: 43 } }",
          OutOfMemoryPacket{1, 2, 3, 4, 5, kAutograd}),
      MakeCase("input_tensor { name: 1 address_delta: -2 bytes: 3 shape: 8 shape: 512 shape: -1 shape: "
               "1099511627776 "
               "dtype: 4 step: 5 on_device: true module_object: 6 }",
               InputTensorPacket{1, -2, 3, kShape, 4, 5, true, 6}),
      MakeCase("binary { id: 1 path: 2 build_id: \"\\001\\000\\377\" load_bias: 3 begin: 4 end: 5 }",
               BinaryPacket{1, 2, std::string_view("\x01\x00\xff", 3), 3, 4, 5}),
      MakeCase(
          "process { pid: 1 parent_pid: 2 rank: 3 local_rank: 4 world_size: 5 start_unix_ns: 6 "
          "start_monotonic_ns: 7 argument: \"python\" argument: \"\" argument: \"train.py\" environment: "
          "\"CUDA_VISIBLE_DEVICES=0\" host: \"h\" executable: \"e\" writer_version: \"w\" python_version: "
          "\"p\" "
          "torch_version: \"t\" working_folder: \"f\" simulated: true driver_version: \"d\" "
          "cuda_runtime_version: \"c\" }",
          ProcessPacket{1, 2, 3, 4, 5, 6, 7, kArguments, kEnvironment, "h", "e", "w", "p", "t", "f", true,
                        "d", "c"}),
      MakeCase("device { device: 1 name: \"NVIDIA GeForce RTX 4090\" total_bytes: 2 compute_major: 8 "
               "compute_minor: "
               "9 multiprocessors: 128 uuid: \"GPU-0\" }",
               DevicePacket{1, "NVIDIA GeForce RTX 4090", 2, 8, 9, 128, "GPU-0"}),
      MakeCase("context { device: 1 context: 2 destroyed: true }", ContextPacket{1, 2, true}),
      MakeCase("feature { name: 1 on: true reason: \"r\" }", FeaturePacket{1, true, "r"}),
      MakeCase("loss { reason: REASON_TABLE_FULL events: 2 text: \"x\" }", LossPacket{3, 2, "x"}),
      MakeCase(
          "trailer { events: 1 block_allocations: 2 block_frees: 3 driver_allocations: 4 lost_events: 5 }",
          TrailerPacket{1, 2, 3, 4, 5}),
      MakeCase(
          "dropped { first_sequence: 1 last_sequence: 2 events: 3 first_step: 4 steps: 5 first_time_ns: 6 "
          "last_time_ns: 7 }",
          DroppedPacket{1, 2, 3, 4, 5, 6, 7}),
      MakeCase(
          "step_summary { first_step: 1 steps: 2 device: 3 peak: 4 low: 5 reserved: 6 driver: 7 events: 8 "
          "retries: 9 end_time_ns: 10 last_sequence: 11 }",
          StepSummaryPacket{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}),
      MakeCase("host_allocate { address_delta: -1 bytes: 2 stack: 3 function: 4 caller: 5 result: 6 }",
               HostAllocatePacket{-1, 2, 3, 4, 5, 6}),
      MakeCase("host_free { address_delta: -1 stack: 2 function: 3 caller: 4 result: 5 }",
               HostFreePacket{-1, 2, 3, 4, 5}),
      MakeCase("memory_map { address_delta: -1 bytes: 2 handle: 3 offset: 4 device: 5 }",
               MemoryMapPacket{-1, 2, 3, 4, 5}),
      MakeCase("memory_unmap { address_delta: -1 bytes: 2 device: 3 }", MemoryUnmapPacket{-1, 2, 3}),
      MakeCase("thread { id: 1 system_id: 2 name: \"pt_autograd_0\" }", ThreadPacket{1, 2, "pt_autograd_0"}),
  };
}

v1::Packet Expected(const Case& c) {
  v1::Packet packet;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(c.text, &packet)) << c.text;
  packet.set_sequence_delta(kStamp.sequence_delta);
  packet.set_time_delta_ns(kStamp.time_delta_ns);
  return packet;
}

const Message& Body(const v1::Packet& packet) {
  const auto* const reflection = packet.GetReflection();
  return reflection->GetMessage(
      packet, reflection->GetOneofFieldDescriptor(packet, packet.GetDescriptor()->FindOneofByName("body")));
}

v1::Packet Parse(std::span<const std::byte> bytes) {
  PacketCursor cursor(bytes);
  std::span<const std::byte> packet_bytes;
  EXPECT_TRUE(cursor.Next(&packet_bytes));
  EXPECT_EQ(cursor.Offset(), bytes.size());
  v1::Packet packet;
  EXPECT_TRUE(packet.ParseFromArray(packet_bytes.data(), static_cast<int>(packet_bytes.size())));
  return packet;
}

TEST(Encoder, AgreesWithLibprotobufInEveryMessage) {
  for (const Case& c : Cases()) {
    std::byte buffer[kEventBufferBytes];
    const v1::Packet expected = Expected(c);
    const std::span<const std::byte> bytes = c.encode(buffer);
    const v1::Packet read = Parse(bytes);
    EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(read, expected))
        << read.ShortDebugString() << "\n"
        << c.text;
    // Nothing but what libprotobuf writes itself: no field twice, no default written out.
    EXPECT_EQ(bytes.size(), expected.ByteSizeLong() + (expected.ByteSizeLong() < 128 ? 1 : 2)) << c.text;
  }
}

TEST(Encoder, EveryMessageOfTheFormatHasACase) {
  std::set<std::string> missing;
  const auto* const body = v1::Packet::descriptor()->FindOneofByName("body");
  for (int i = 0; i < body->field_count(); ++i) missing.insert(body->field(i)->name());
  for (const Case& c : Cases()) missing.erase(c.text.substr(0, c.text.find(' ')));
  EXPECT_THAT(missing, testing::IsEmpty());
}

// The cut mark of String cannot be set directly: StringsAreCut covers it.
TEST(Encoder, EveryFieldOfTheFormatIsSetInItsCase) {
  const std::function<void(const Message&)> check = [&check](const Message& message) {
    for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor* const field = message.GetDescriptor()->field(i);
      if (field->full_name() == "vramtrace.v1.String.cut") continue;
      const bool set = field->is_repeated() ? message.GetReflection()->FieldSize(message, field) > 0
                                            : message.GetReflection()->HasField(message, field);
      EXPECT_TRUE(set) << field->full_name();
      if (set && field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field->is_repeated()) {
        check(message.GetReflection()->GetMessage(message, field));
      }
    }
  };
  for (const Case& c : Cases()) check(Body(Expected(c)));
}

TEST(Encoder, KeepsTheBodyOfAnEmptyMessage) {
  std::byte buffer[kEventBufferBytes];
  EXPECT_TRUE(Parse(EncodePacket({}, BlockFreePacket{}, buffer)).has_block_free());
  EXPECT_TRUE(Parse(EncodePacket({}, TrailerPacket{}, buffer)).has_trailer());
  EXPECT_FALSE(Parse(EncodePacket({}, BlockFreePacket{}, buffer)).block_free().has_autograd());
}

TEST(Encoder, ABufferThatIsTooSmallGivesNothing) {
  for (const Case& c : Cases()) {
    std::byte buffer[kEventBufferBytes];
    const size_t needed = c.encode(buffer).size();
    for (size_t size = 0; size < needed; ++size) {
      EXPECT_TRUE(c.encode(std::span(buffer, size)).empty()) << c.text << " in " << size;
    }
  }
}

TEST(Encoder, StringsAreCut) {
  std::vector<std::byte> buffer(kTableBufferBytes);
  const std::string fits(kMaxTextBytes, 'x');
  EXPECT_EQ(Parse(EncodePacket({}, StringPacket{1, fits}, buffer)).string().text(), fits);
  EXPECT_FALSE(Parse(EncodePacket({}, StringPacket{1, fits}, buffer)).string().cut());
  // The cut would fall into the middle of the character.
  const std::string too_long = fits.substr(1) + "\xC3\xA4";
  const v1::Packet cut = Parse(EncodePacket({}, StringPacket{1, too_long}, buffer));
  EXPECT_EQ(cut.string().text(), fits.substr(1));
  EXPECT_TRUE(cut.string().cut());
}

TEST(Encoder, TextThatIsNoUtf8BecomesReadable) {
  std::byte buffer[256];
  EXPECT_EQ(Parse(EncodePacket({}, ThreadPacket{1, 2, "a\xE4z"}, buffer)).thread().name(), "a\xEF\xBF\xBDz");
}

TEST(Encoder, TheWorstEventFitsTheEventBuffer) {
  const std::vector<int64_t> shape(kMaxDimensions + 10, -1);
  InputTensorPacket packet{UINT32_MAX, INT64_MIN,  UINT64_MAX, shape,
                           UINT32_MAX, UINT64_MAX, true,       UINT64_MAX};
  std::byte buffer[kEventBufferBytes];
  const v1::Packet read = Parse(EncodePacket({UINT64_MAX, UINT64_MAX}, packet, buffer));
  EXPECT_EQ(read.input_tensor().shape_size(), static_cast<int>(kMaxDimensions));
}

TEST(Encoder, TheWorstTablePacketFitsTheTableBuffer) {
  const std::string text(2 * kMaxTextBytes, '\xE4');
  DevicePacket packet{UINT32_MAX, text, UINT64_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, text};
  std::vector<std::byte> buffer(kTableBufferBytes);
  EXPECT_FALSE(EncodePacket({UINT64_MAX, UINT64_MAX}, packet, buffer).empty());
}

}  // namespace
}  // namespace vramtrace::trace
