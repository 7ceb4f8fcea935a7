#pragma once
// Any protobuf message as JSON: keys are field names in snake case, 64-bit integers are numbers (not strings,
// as protobuf's own JSON has them), every field is present unless it is a message that is not set.

#include <google/protobuf/message.h>

#include <nlohmann/json_fwd.hpp>

namespace vramtrace::report {

[[nodiscard]] nlohmann::ordered_json ToJson(const google::protobuf::Message& message);

}  // namespace vramtrace::report
