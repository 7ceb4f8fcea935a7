#include "analyzer/report/dump.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>

#include <algorithm>

#include "analyzer/model/tables.h"
#include "analyzer/symbolize/names.h"
#include "analyzer/trace/event_stream.h"

namespace vramtrace::report {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Fields of type uint32 that are ids of strings. By name: a name means the same in every packet.
constexpr std::string_view kStringFields[] = {"file",     "qualified_name", "path",     "operator_name",
                                              "function", "caller",         "name",     "state_key",
                                              "dtype",    "class_name",     "optimizer"};

bool IsStringId(const FieldDescriptor* field) {
  const auto* end = std::end(kStringFields);
  return field->cpp_type() == FieldDescriptor::CPPTYPE_UINT32 &&
         std::find(std::begin(kStringFields), end, field->name()) != end;
}

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : symbolize::Printable(text)) {
    if (c == '"') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string Hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

class LineWriter {
 public:
  LineWriter(const model::Tables& tables, uint64_t base_address)
      : tables_(tables), base_address_(base_address) {}

  void AddFields(const Message& message, const std::string& prefix) {
    // A delta of zero is not written, but it is an address.
    const FieldDescriptor* address = message.GetDescriptor()->FindFieldByName("address_delta");
    if (address != nullptr) AddField(message, address, prefix);
    std::vector<const FieldDescriptor*> fields;
    message.GetReflection()->ListFields(message, &fields);
    for (const FieldDescriptor* field : fields) {
      if (field != address) AddField(message, field, prefix);
    }
  }

  [[nodiscard]] std::string Take() { return std::move(line_); }

 private:
  void AddField(const Message& message, const FieldDescriptor* field, const std::string& prefix) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field->is_repeated()) {
      AddFields(message.GetReflection()->GetMessage(message, field), prefix + field->name() + ".");
    } else if (field->is_repeated()) {
      const int size = message.GetReflection()->FieldSize(message, field);
      std::string list;
      for (int i = 0; i < size; ++i) list += (i == 0 ? "" : ",") + Element(message, field, i);
      line_ += fmt::format(" {}{}=[{}]", prefix, field->name(), list);
    } else if (field->name() == "address_delta") {
      const auto delta = static_cast<uint64_t>(message.GetReflection()->GetInt64(message, field));
      line_ += fmt::format(" {}address={:#x}", prefix, base_address_ + delta);
    } else {
      line_ += fmt::format(" {}{}={}", prefix, field->name(), Value(message, field));
    }
  }

  [[nodiscard]] std::string Value(const Message& message, const FieldDescriptor* field) const {
    const Reflection* reflection = message.GetReflection();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_UINT32: {
        const uint32_t value = reflection->GetUInt32(message, field);
        return IsStringId(field) ? Quoted(tables_.Text(model::StringId{value})) : fmt::format("{}", value);
      }
      case FieldDescriptor::CPPTYPE_UINT64: {
        const uint64_t value = reflection->GetUInt64(message, field);
        return fmt::format(fmt::runtime(IsPointer(field) ? "{:#x}" : "{}"), value);
      }
      case FieldDescriptor::CPPTYPE_INT64:
        return fmt::format("{}", reflection->GetInt64(message, field));
      case FieldDescriptor::CPPTYPE_BOOL:
        return reflection->GetBool(message, field) ? "true" : "false";
      case FieldDescriptor::CPPTYPE_ENUM:
        return reflection->GetEnum(message, field)->name();
      case FieldDescriptor::CPPTYPE_STRING: {
        const std::string text = reflection->GetString(message, field);
        return field->type() == FieldDescriptor::TYPE_BYTES ? Hex(text) : Quoted(text);
      }
      default:
        return "?";
    }
  }

  [[nodiscard]] static std::string Element(const Message& message, const FieldDescriptor* field, int i) {
    const Reflection* reflection = message.GetReflection();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT64:
        return fmt::format("{}", reflection->GetRepeatedInt64(message, field, i));
      case FieldDescriptor::CPPTYPE_STRING:
        return Quoted(reflection->GetRepeatedString(message, field, i));
      default:
        return "?";
    }
  }

  static bool IsPointer(const FieldDescriptor* field) {
    const std::string& name = field->name();
    return name == "pc" || name == "load_bias" || name == "begin" || name == "end" || name == "object" ||
           name == "parent" || name == "module_object" || name == "optimizer_object" || name == "context" ||
           name == "handle" || name == "stream";
  }

  const model::Tables& tables_;
  uint64_t base_address_;
  std::string line_;
};

const FieldDescriptor* BodyField(const vramtrace::v1::Packet& packet) {
  const auto* body = packet.GetDescriptor()->FindOneofByName("body");
  return packet.GetReflection()->GetOneofFieldDescriptor(packet, body);
}

std::string DumpLine(const model::Tables& tables, const trace::Event& event, uint64_t base_time_ns) {
  vramtrace::v1::Packet packet;
  // The body alone, in its place: the packet's own deltas are printed as what they add up to.
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  {
    google::protobuf::io::CodedOutputStream coded(&stream);
    constexpr uint32_t kLengthDelimited = 2;
    coded.WriteTag(static_cast<uint32_t>(event.kind) << 3 | kLengthDelimited);
    coded.WriteVarint32(static_cast<uint32_t>(event.body.size()));
    coded.WriteRaw(event.body.data(), static_cast<int>(event.body.size()));
  }
  const std::string sequence = event.has_sequence ? fmt::format("{}", event.sequence) : "-";
  const double seconds = static_cast<double>(event.time_ns - std::min(event.time_ns, base_time_ns)) / 1e9;
  const std::string head = fmt::format("{} +{:.6f} t{}", sequence, seconds, trace::Raw(event.thread));
  if (!packet.ParseFromString(bytes)) return head + " malformed";
  const FieldDescriptor* field = BodyField(packet);
  if (field == nullptr) return head + " unknown";
  LineWriter writer(tables, event.base_address);
  writer.AddFields(packet.GetReflection()->GetMessage(packet, field), "");
  return fmt::format("{} {}{}", head, field->name(), writer.Take());
}

}  // namespace

trace::Result<trace::LoadStatistics> DumpTrace(const std::string& path,
                                               const std::function<void(std::string_view)>& line) {
  const trace::Result<std::shared_ptr<trace::TraceFile>> opened = trace::TraceFile::Open(path);
  if (!opened.ok()) return opened.error();
  const std::shared_ptr<trace::TraceFile>& file = opened.value();
  const std::shared_ptr<const model::Tables> tables = model::ReadTables(*file);
  uint64_t base_time_ns = UINT64_MAX;
  for (const trace::ChunkPlace& chunk : file->chunks()) {
    base_time_ns = std::min(base_time_ns, chunk.fields.base_time_ns);
  }
  trace::EventStream stream(file, trace::EventStream::Counting::kCount);
  while (const trace::Event* event = stream.Next()) line(DumpLine(*tables, *event, base_time_ns));
  return trace::LoadStatistics(file->statistics());
}

}  // namespace vramtrace::report
