#include "tests/golden/stored.h"

#include <zlib.h>

namespace vramtrace::testing {

std::string ReadStored(const std::string& name) {
  std::string bytes;
  const gzFile file = gzopen((std::string(GOLDEN_FOLDER) + "/stored/" + name).c_str(), "rb");
  if (file == nullptr) return bytes;
  char part[65536];
  for (int count = 0; (count = gzread(file, part, sizeof part)) > 0;) {
    bytes.append(part, static_cast<size_t>(count));
  }
  gzclose(file);
  return bytes;
}

}  // namespace vramtrace::testing
