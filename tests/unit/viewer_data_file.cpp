#include "tests/unit/viewer_data_file.h"

#include <gtest/gtest.h>

#include <cstring>

namespace vramtrace::testing {
namespace {

template <typename Value>
std::vector<double> Read(const char* from, size_t count) {
  std::vector<Value> values(count);
  if (count > 0) std::memcpy(values.data(), from, count * sizeof(Value));
  return {values.begin(), values.end()};
}

}  // namespace

DataFile::DataFile(std::string bytes) : bytes_(std::move(bytes)) {
  EXPECT_EQ(bytes_.substr(0, 8), "VTVIEW01");
  uint64_t length = 0;
  std::memcpy(&length, bytes_.data() + 8, sizeof length);
  EXPECT_EQ(length % 8, 0U) << "columns must be aligned";
  first_column_ = 16 + length;
  header_ = nlohmann::json::parse(bytes_.substr(16, length));
}

std::vector<double> DataFile::Column(const std::string& name) const {
  for (const nlohmann::json& column : header_["columns"]) {
    if (column["name"] != name) continue;
    const size_t offset = first_column_ + column["offset"].get<size_t>();
    EXPECT_EQ(offset % 8, 0U) << name;
    const char* from = bytes_.data() + offset;
    const auto count = column["count"].get<size_t>();
    const std::string type = column["type"];
    if (type == "u8") return Read<uint8_t>(from, count);
    if (type == "u32") return Read<uint32_t>(from, count);
    return Read<double>(from, count);
  }
  return {};
}

std::string DataFile::Text(double id) const { return header_["strings"][static_cast<size_t>(id)]; }

std::vector<size_t> DataFile::Alive(uint32_t device, uint32_t tick) const {
  const std::vector<double> devices = Column("block.device");
  const std::vector<double> allocated = Column("block.allocated");
  const std::vector<double> freed = Column("block.freed");
  std::vector<size_t> rows;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i] == device && allocated[i] <= tick && tick < freed[i]) rows.push_back(i);
  }
  return rows;
}

int64_t DataFile::Mark(uint32_t device, const std::string& kind) const {
  for (const nlohmann::json& mark : header_["marks"]) {
    if (mark["device"] == device && mark["kind"] == kind) return mark["tick"];
  }
  return -1;
}

}  // namespace vramtrace::testing
