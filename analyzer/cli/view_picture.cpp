#include "analyzer/cli/view_picture.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include "analyzer/viewer_data/build.h"
#include "analyzer/viewer_data/picture.h"

namespace vramtrace::cli {

std::optional<trace::Error> WritePicture(const std::string& trace, const std::string& output) {
  const auto data = viewer_data::ViewerData::Build(trace, viewer_data::Diagnoses::kNone);
  if (!data.ok()) return data.error();
  std::ofstream file(output, std::ios::binary | std::ios::trunc);
  file << viewer_data::DrawPicture(*data.value());
  file.close();
  if (file) return std::nullopt;
  return trace::Error{output, std::nullopt, std::string("cannot be written: ") + std::strerror(errno)};
}

}  // namespace vramtrace::cli
