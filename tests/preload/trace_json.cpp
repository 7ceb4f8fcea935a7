// trace_json FILE: one JSON object a packet, for the tests written in Python. Ids of strings are replaced by
// their texts; stacks are given once, as a line {"stacks": {id: [[file, name, line, module], ...]}}.

#include <google/protobuf/util/json_util.h>

#include <cinttypes>
#include <cstdio>
#include <set>
#include <string>

#include "tests/preload/recorded.h"

namespace {

using vramtrace::tests::Recorded;

// Fields that are ids of strings, by name.
const std::set<std::string> kTextFields = {"name",     "state_key", "dtype",         "path",     "class_name",
                                           "function", "caller",    "operator_name", "optimizer"};

void Resolve(const Recorded& trace, google::protobuf::Message* message, std::string* texts) {
  const auto* reflection = message->GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection->ListFields(*message, &fields);
  for (const auto* field : fields) {
    if (field->is_repeated()) continue;
    if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) {
      Resolve(trace, reflection->MutableMessage(message, field), texts);
    } else if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_UINT32 &&
               kTextFields.count(std::string(field->name())) != 0) {
      *texts += ",\"" + std::string(field->name()) + "\":\"";
      for (const char c : trace.Text(reflection->GetUInt32(*message, field))) {
        if (c == '"' || c == '\\') *texts += '\\';
        *texts += c;
      }
      *texts += '"';
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const Recorded trace(argv[1]);
  if (!trace.error.empty()) {
    std::fprintf(stderr, "%s\n", trace.error.c_str());
    return 1;
  }
  std::set<uint32_t> stacks;
  for (auto packet : trace.packets) {
    std::string texts;
    Resolve(trace, &packet.packet, &texts);
    if (packet.packet.has_block_allocate()) stacks.insert(packet.packet.block_allocate().stack());
    if (packet.packet.has_block_free()) stacks.insert(packet.packet.block_free().stack());
    if (packet.packet.has_driver_allocate()) stacks.insert(packet.packet.driver_allocate().stack());
    if (packet.packet.has_out_of_memory()) stacks.insert(packet.packet.out_of_memory().stack());
    std::string json;
    google::protobuf::util::JsonPrintOptions options;
    options.preserve_proto_field_names = true;
    (void)google::protobuf::util::MessageToJsonString(packet.packet, &json, options);
    std::printf("{\"sequence\":%" PRIu64 ",\"address\":%" PRIu64 ",\"thread\":%u,\"packet\":%s%s}\n",
                packet.sequence, packet.address, packet.thread, json.c_str(), texts.c_str());
  }
  std::printf("{\"stacks\":{");
  const char* separator = "";
  for (const uint32_t id : stacks) {
    std::printf("%s\"%u\":[", separator, id);
    const char* comma = "";
    for (const auto& frame : trace.Stack(id)) {
      std::printf("%s[\"%s\",\"%s\",%u,%" PRIu64 ",%d]", comma, frame.file.c_str(), frame.name.c_str(),
                  frame.line, frame.module_object, frame.native ? 1 : 0);
      comma = ",";
    }
    std::printf("]");
    separator = ",";
  }
  std::printf("}}\n");
  return 0;
}
