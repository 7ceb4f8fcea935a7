#include "analyzer/estimate/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

namespace vramtrace::estimate {
namespace {

using nlohmann::json;

// The format's own limit (safetensors/src/tensor.rs, MAX_HEADER_SIZE).
constexpr uint64_t kMostHeaderBytes = 100'000'000;
constexpr uint64_t kPrefixBytes = 8;

struct StoredType {
  const char* name;
  uint64_t bits;
};
constexpr StoredType kTypes[] = {
    {"BOOL", 8}, {"U8", 8},   {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8},
    {"I16", 16}, {"U16", 16}, {"F16", 16}, {"BF16", 16},   {"I32", 32},    {"U32", 32},
    {"F32", 32}, {"F64", 64}, {"I64", 64}, {"U64", 64},    {"F4", 4},      {"C64", 64},
};

std::string Short(const std::string& name) {
  std::string text = name.substr(0, 60);
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c > 0x7e; }, '?');
  return text;
}

// Elements of a shape; nothing where it is none or too large.
std::optional<uint64_t> Elements(const json& shape) {
  constexpr uint64_t kMost = uint64_t{1} << 50;
  if (!shape.is_array() || shape.size() > 16) return std::nullopt;
  uint64_t product = 1;
  for (const json& side : shape) {
    if (!side.is_number_unsigned()) return std::nullopt;
    const uint64_t length = side.get<uint64_t>();
    if (length != 0 && product > kMost / length) return std::nullopt;
    product *= length;
  }
  return product;
}

// What is wrong with a tensor's row; empty when it is good, and then it has been added.
std::string AddTensor(const json& row, uint64_t data_bytes, StoredTensors& sum) {
  if (!row.is_object()) return "an object with dtype, shape and data_offsets was expected";
  const auto dtype = row.find("dtype");
  const auto shape = row.find("shape");
  const auto offsets = row.find("data_offsets");
  if (dtype == row.end() || shape == row.end() || offsets == row.end() || !dtype->is_string()) {
    return "dtype, shape or data_offsets is missing";
  }
  const std::string type_name = dtype->get<std::string>();
  const auto* type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                  [&](const StoredType& known) { return type_name == known.name; });
  if (type == std::end(kTypes)) return fmt::format("dtype '{}' is not one of the format's", Short(type_name));
  const std::optional<uint64_t> elements = Elements(*shape);
  if (!elements) return "its shape is not a list of sizes of at least 0, or their product is above 2^50";
  const bool pair = offsets->is_array() && offsets->size() == 2 && (*offsets)[0].is_number_unsigned() &&
                    (*offsets)[1].is_number_unsigned();
  if (!pair) return "data_offsets is not a pair of offsets";
  const uint64_t begin = (*offsets)[0].get<uint64_t>();
  const uint64_t end = (*offsets)[1].get<uint64_t>();
  const uint64_t bytes = (*elements * type->bits + 7) / 8;
  if (begin > end || end - begin != bytes) {
    return fmt::format("its shape needs {} bytes, its offsets are {} to {}", bytes, begin, end);
  }
  if (end > data_bytes) return fmt::format("it ends at byte {} of the data, which has {}", end, data_bytes);
  sum.tensors += 1;
  sum.elements += *elements;
  sum.bytes += bytes;
  sum.bytes_by_dtype[type_name] += bytes;
  return "";
}

}  // namespace

trace::Result<StoredTensors> ReadSafetensors(const std::string& file) {
  std::ifstream stream(file, std::ios::binary | std::ios::ate);
  if (!stream) return trace::Error{file, std::nullopt, "cannot be read"};
  const auto size = static_cast<uint64_t>(std::max<std::streamoff>(stream.tellg(), 0));
  if (size < kPrefixBytes)
    return trace::Error{file, 0, "8 bytes of header length were expected, the file is shorter"};
  stream.seekg(0);
  uint8_t prefix[kPrefixBytes];
  stream.read(reinterpret_cast<char*>(prefix), kPrefixBytes);
  uint64_t length = 0;
  for (size_t at = 0; at < kPrefixBytes; ++at) length |= uint64_t{prefix[at]} << (8 * at);
  if (length > kMostHeaderBytes || length > size - kPrefixBytes) {
    return trace::Error{
        file, 0,
        fmt::format("a header of {} bytes is announced; the file has {} and the format allows {}", length,
                    size - kPrefixBytes, kMostHeaderBytes)};
  }
  std::string text(length, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(length));
  const auto depth_guard = [](int depth, json::parse_event_t, json&) { return depth <= 8; };
  json header;
  try {
    header = json::parse(text, depth_guard, true);
  } catch (const json::parse_error& error) {
    return trace::Error{file, kPrefixBytes + (error.byte > 0 ? error.byte - 1 : 0),
                        "the header is not JSON from here on"};
  } catch (const json::exception&) {
    return trace::Error{file, kPrefixBytes, "the header holds a number that cannot be held"};
  }
  if (!header.is_object()) return trace::Error{file, kPrefixBytes, "the header is not a JSON object"};
  StoredTensors sum;
  sum.files = 1;
  for (const auto& [name, row] : header.items()) {
    if (name == "__metadata__") continue;
    const std::string wrong = AddTensor(row, size - kPrefixBytes - length, sum);
    if (!wrong.empty())
      return trace::Error{file, kPrefixBytes, fmt::format("tensor '{}': {}", Short(name), wrong)};
  }
  return sum;
}

trace::Result<std::optional<StoredTensors>> TensorsBeside(const std::string& config_file) {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::path(config_file).parent_path();
  if (folder.empty()) folder = ".";
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path().string());
  }
  if (files.empty()) return std::optional<StoredTensors>();
  std::sort(files.begin(), files.end());
  StoredTensors all;
  for (const std::string& file : files) {
    trace::Result<StoredTensors> one = ReadSafetensors(file);
    if (!one.ok()) return one.error();
    all.files += 1;
    all.tensors += one.value().tensors;
    all.elements += one.value().elements;
    all.bytes += one.value().bytes;
    for (const auto& [dtype, bytes] : one.value().bytes_by_dtype) all.bytes_by_dtype[dtype] += bytes;
  }
  return std::optional<StoredTensors>(all);
}

}  // namespace vramtrace::estimate
