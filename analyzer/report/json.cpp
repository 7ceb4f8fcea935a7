#include "analyzer/report/json.h"

#include <google/protobuf/descriptor.h>

#include <nlohmann/json.hpp>

namespace vramtrace::report {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using nlohmann::ordered_json;

ordered_json Scalar(const Message& message, const FieldDescriptor* field) {
  const google::protobuf::Reflection* reflection = message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection->GetInt32(message, field);
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection->GetInt64(message, field);
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection->GetUInt32(message, field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection->GetUInt64(message, field);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection->GetDouble(message, field);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return reflection->GetFloat(message, field);
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection->GetBool(message, field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection->GetEnum(message, field)->name();
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection->GetString(message, field);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ToJson(reflection->GetMessage(message, field));
  }
  return nullptr;
}

ordered_json Element(const Message& message, const FieldDescriptor* field, int i) {
  const google::protobuf::Reflection* reflection = message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection->GetRepeatedInt32(message, field, i);
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection->GetRepeatedInt64(message, field, i);
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection->GetRepeatedUInt32(message, field, i);
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection->GetRepeatedUInt64(message, field, i);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection->GetRepeatedDouble(message, field, i);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return reflection->GetRepeatedFloat(message, field, i);
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection->GetRepeatedBool(message, field, i);
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection->GetRepeatedEnum(message, field, i)->name();
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection->GetRepeatedString(message, field, i);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ToJson(reflection->GetRepeatedMessage(message, field, i));
  }
  return nullptr;
}

}  // namespace

ordered_json ToJson(const Message& message) {
  ordered_json object = ordered_json::object();
  const google::protobuf::Descriptor* descriptor = message.GetDescriptor();
  const google::protobuf::Reflection* reflection = message.GetReflection();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    if (field->is_repeated()) {
      ordered_json array = ordered_json::array();
      const int size = reflection->FieldSize(message, field);
      for (int j = 0; j < size; ++j) array.push_back(Element(message, field, j));
      object[field->name()] = std::move(array);
    } else if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE ||
               reflection->HasField(message, field)) {
      object[field->name()] = Scalar(message, field);
    }
  }
  return object;
}

}  // namespace vramtrace::report
