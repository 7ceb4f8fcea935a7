#pragma once
// The headers of a folder's *.safetensors files: the exact shape and type of every tensor, without reading a
// weight. A file begins with the header's length (8 bytes, little-endian) and the header, a JSON object of
// {"name": {"dtype": "BF16", "shape": [..], "data_offsets": [begin, end]}}
// (github.com/huggingface/safetensors, Format).

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "analyzer/trace/result.h"

namespace vramtrace::estimate {

struct StoredTensors {
  size_t files = 0;
  uint64_t tensors = 0;
  uint64_t elements = 0;
  uint64_t bytes = 0;
  std::map<std::string, uint64_t> bytes_by_dtype;
};

// Adds what one file holds. The error names the file, the offset, and the tensor.
[[nodiscard]] trace::Result<StoredTensors> ReadSafetensors(const std::string& file);

// All of them in the folder of `config_file`; nothing where there is none.
[[nodiscard]] trace::Result<std::optional<StoredTensors>> TensorsBeside(const std::string& config_file);

}  // namespace vramtrace::estimate
