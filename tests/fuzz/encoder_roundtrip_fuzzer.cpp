// Any values, texts and buffer sizes: what the encoder writes libprotobuf reads back, or the encoder writes
// nothing.

#include <fuzzer/FuzzedDataProvider.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "preload/trace/chunk_reader.h"
#include "preload/trace/encoder.h"
#include "preload/trace/text.h"
#include "preload/trace/vramtrace.pb.h"

namespace vramtrace::trace {
namespace {

void Expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::abort();
}

#define EXPECT_SAME(read, given) Expect((read) == (given), #read " == " #given)

std::string Clean(const std::string& text) {
  std::string room(kMaxTextBytes, '\0');
  bool cut = false;
  return std::string(CleanText(text, std::span(room.data(), room.size()), &cut));
}

class RoundTrip {
 public:
  explicit RoundTrip(FuzzedDataProvider* data) : data_(*data) {
    stamp_ = {data_.ConsumeIntegral<uint64_t>(), data_.ConsumeIntegral<uint64_t>()};
    buffer_.resize(data_.ConsumeIntegralInRange<size_t>(0, 4 * kTableBufferBytes));
  }

  // The packet as libprotobuf reads it; false when the encoder found the buffer too small.
  template <typename Body>
  bool Read(const Body& body, v1::Packet* packet) {
    const std::span<const std::byte> bytes = EncodePacket(stamp_, body, buffer_);
    if (bytes.empty()) {
      Expect(buffer_.size() < 4 * kTableBufferBytes, "a packet fits a large buffer");
      return false;
    }
    PacketCursor cursor(bytes);
    std::span<const std::byte> inner;
    Expect(cursor.Next(&inner) && cursor.Offset() == bytes.size(), "one packet and nothing else");
    Expect(packet->ParseFromArray(inner.data(), static_cast<int>(inner.size())), "libprotobuf reads it");
    EXPECT_SAME(packet->sequence_delta(), stamp_.sequence_delta);
    EXPECT_SAME(packet->time_delta_ns(), stamp_.time_delta_ns);
    return true;
  }

  void Texts() {
    const std::string text = data_.ConsumeRandomLengthString(2 * kMaxTextBytes);
    v1::Packet packet;
    if (!Read(StringPacket{.id = data_.ConsumeIntegral<uint32_t>(), .text = text}, &packet)) return;
    EXPECT_SAME(packet.string().text(), Clean(text));
    Expect(packet.has_string(), "the body is kept");
  }

  void Block() {
    const BlockAllocatePacket given{.address_delta = data_.ConsumeIntegral<int64_t>(),
                                    .bytes = data_.ConsumeIntegral<uint64_t>(),
                                    .requested = data_.ConsumeIntegral<uint64_t>(),
                                    .stack = data_.ConsumeIntegral<uint32_t>(),
                                    .device = data_.ConsumeIntegral<uint32_t>(),
                                    .thread = data_.ConsumeIntegral<uint32_t>(),
                                    .autograd = {.sequence_number = data_.ConsumeIntegral<uint64_t>(),
                                                 .operator_name = data_.ConsumeIntegral<uint32_t>(),
                                                 .node_thread = data_.ConsumeIntegral<uint64_t>()},
                                    .allocated_total = data_.ConsumeIntegral<uint64_t>(),
                                    .reserved_total = data_.ConsumeIntegral<uint64_t>()};
    v1::Packet packet;
    if (!Read(given, &packet)) return;
    const v1::BlockAllocate& read = packet.block_allocate();
    EXPECT_SAME(read.address_delta(), given.address_delta);
    EXPECT_SAME(read.bytes(), given.bytes);
    EXPECT_SAME(read.requested(), given.requested);
    EXPECT_SAME(read.stack(), given.stack);
    EXPECT_SAME(read.device(), given.device);
    EXPECT_SAME(read.thread(), given.thread);
    EXPECT_SAME(read.autograd().sequence_number(), given.autograd.sequence_number);
    EXPECT_SAME(read.autograd().operator_name(), given.autograd.operator_name);
    EXPECT_SAME(read.autograd().node_thread(), given.autograd.node_thread);
    EXPECT_SAME(read.allocated_total(), given.allocated_total);
    EXPECT_SAME(read.reserved_total(), given.reserved_total);
  }

  void Shape() {
    std::vector<int64_t> shape(data_.ConsumeIntegralInRange<size_t>(0, 2 * kMaxDimensions));
    for (int64_t& extent : shape) extent = data_.ConsumeIntegral<int64_t>();
    v1::Packet packet;
    if (!Read(LabelPacket{.address_delta = data_.ConsumeIntegral<int64_t>(), .shape = shape}, &packet))
      return;
    shape.resize(std::min(shape.size(), kMaxDimensions));
    EXPECT_SAME(std::vector<int64_t>(packet.label().shape().begin(), packet.label().shape().end()), shape);
  }

  void Process() {
    std::vector<std::string> texts;
    while (texts.size() < 8 && data_.remaining_bytes() > 0)
      texts.push_back(data_.ConsumeRandomLengthString(300));
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    v1::Packet packet;
    if (!Read(ProcessPacket{.argument = views, .host = views.empty() ? "" : views[0]}, &packet)) return;
    EXPECT_SAME(packet.process().argument_size(), static_cast<int>(texts.size()));
    for (size_t i = 0; i < texts.size(); ++i) {
      EXPECT_SAME(packet.process().argument(static_cast<int>(i)), Clean(texts[i]));
    }
  }

  void Bytes() {
    const std::string build_id = data_.ConsumeRandomLengthString(64);
    v1::Packet packet;
    if (Read(BinaryPacket{.build_id = build_id}, &packet)) EXPECT_SAME(packet.binary().build_id(), build_id);
  }

 private:
  FuzzedDataProvider& data_;
  PacketStamp stamp_;
  std::vector<std::byte> buffer_;
};

}  // namespace
}  // namespace vramtrace::trace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  FuzzedDataProvider data(bytes, size);
  const int kind = data.ConsumeIntegralInRange(0, 4);
  vramtrace::trace::RoundTrip trip(&data);
  switch (kind) {
    case 0:
      trip.Texts();
      break;
    case 1:
      trip.Block();
      break;
    case 2:
      trip.Shape();
      break;
    case 3:
      trip.Process();
      break;
    default:
      trip.Bytes();
      break;
  }
  return 0;
}
