#include "tests/unit/viewer_data_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <numeric>

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
  const auto look_up = [this](const std::string& keys, const std::string& values) {
    std::vector<double> found = Raw(keys);
    const std::vector<double> table = Raw(values);
    for (double& value : found) value = table.at(static_cast<size_t>(value));
    return found;
  };
  if (name == "block.address") return look_up(name, "address.value");
  if (name == "block.freed") {
    std::vector<double> freed = Raw("block.allocated");
    const std::vector<double> lifetime = Raw("block.lifetime");
    for (size_t i = 0; i < freed.size(); ++i) {
      freed[i] = lifetime[i] == 0 ? std::numeric_limits<double>::infinity() : freed[i] + lifetime[i];
    }
    return freed;
  }
  if (name.starts_with("block.") && Raw(name).empty()) return look_up("block.kind", "kind." + name.substr(6));
  return Raw(name);
}

std::vector<double> DataFile::Raw(const std::string& name) const {
  for (const nlohmann::json& column : header_["columns"]) {
    if (column["name"] != name) continue;
    const size_t offset = first_column_ + column["offset"].get<size_t>();
    EXPECT_EQ(offset % 8, 0U) << name;
    const char* from = bytes_.data() + offset;
    const auto count = column["count"].get<size_t>();
    const std::string type = column["type"];
    if (type == "u8") return Read<uint8_t>(from, count);
    if (type == "u32") {
      std::vector<double> values = Read<uint32_t>(from, count);
      if (column.value("coding", "") == "difference")
        std::partial_sum(values.begin(), values.end(), values.begin());
      return values;
    }
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
