#include "analyzer/model/parse_body.h"

#include <google/protobuf/stubs/logging.h>

namespace vramtrace::model {

bool ParseBody(const trace::Event& event, google::protobuf::MessageLite* message) {
  [[maybe_unused]] static google::protobuf::LogHandler* const previous =
      google::protobuf::SetLogHandler(nullptr);
  return message->ParseFromArray(event.body.data(), static_cast<int>(event.body.size()));
}

}  // namespace vramtrace::model
