#pragma once

#include <google/protobuf/message_lite.h>

#include "analyzer/trace/event.h"

namespace vramtrace::model {

// Decodes the message inside a packet. False when it is malformed; libprotobuf's own complaints on stderr are
// switched off, since the reader counts and words what it skips.
[[nodiscard]] bool ParseBody(const trace::Event& event, google::protobuf::MessageLite* message);

}  // namespace vramtrace::model
