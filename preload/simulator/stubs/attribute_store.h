#pragma once
// Attributes of a descriptor, kept as the bytes the program gave and returned as those bytes.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

namespace vramtrace::simulator {

class AttributeStore {
 public:
  struct Attribute {
    int type = 0;       // the library's own type number; 0 where attributes have none
    int64_t count = 0;  // elements
    std::vector<unsigned char> bytes;
  };

  void Set(int name, int type, int64_t count, const void* bytes, size_t size) {
    Attribute& attribute = attributes_[name];
    attribute.type = type;
    attribute.count = count;
    attribute.bytes.resize(size);
    if (size > 0) std::memcpy(attribute.bytes.data(), bytes, size);
  }

  // nullptr when it was never set.
  [[nodiscard]] const Attribute* Find(int name) const {
    auto found = attributes_.find(name);
    return found == attributes_.end() ? nullptr : &found->second;
  }

  // Writes at most `size` bytes; returns the attribute's own size.
  static size_t Read(const Attribute& attribute, void* destination, size_t size) {
    const size_t copied = std::min(size, attribute.bytes.size());
    if (destination != nullptr && copied > 0) std::memcpy(destination, attribute.bytes.data(), copied);
    return attribute.bytes.size();
  }

 private:
  std::map<int, Attribute> attributes_;
};

}  // namespace vramtrace::simulator
