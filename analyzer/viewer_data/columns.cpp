#include "analyzer/viewer_data/columns.h"

#include <cstring>

namespace vramtrace::viewer_data {

std::string Columns::Finish(nlohmann::ordered_json header) const {
  header["columns"] = described_;
  // Names in a trace are hostile: what is not UTF-8 is replaced rather than thrown on.
  std::string text = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string file = "VTVIEW01";
  const uint64_t length = text.size();
  file.append(reinterpret_cast<const char*>(&length), sizeof length);
  return file + text + bytes_;
}

}  // namespace vramtrace::viewer_data
