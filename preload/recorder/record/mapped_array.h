#pragma once
// A growing array of plain values straight from mmap: no malloc, no constructor, no destructor. Fresh
// elements are zeros.

#include <sys/mman.h>

#include <cstddef>
#include <type_traits>

namespace vramtrace::record {

template <typename T>
class MappedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  constexpr MappedArray() = default;

  [[nodiscard]] size_t Size() const noexcept { return size_; }
  [[nodiscard]] T& operator[](size_t i) noexcept { return data_[i]; }
  [[nodiscard]] const T& operator[](size_t i) const noexcept { return data_[i]; }
  [[nodiscard]] T* begin() noexcept { return data_; }
  [[nodiscard]] T* end() noexcept { return data_ + size_; }
  [[nodiscard]] T& Back() noexcept { return data_[size_ - 1]; }

  // False where the system has no memory: the array is as it was.
  [[nodiscard]] bool Push(const T& value) noexcept {
    if (size_ == capacity_ && !Grow(capacity_ == 0 ? kFirst : 2 * capacity_)) return false;
    data_[size_++] = value;
    return true;
  }
  // Exactly `size` zeros.
  [[nodiscard]] bool Reset(size_t size) noexcept {
    Free();
    if (size > 0 && !Grow(size)) return false;
    size_ = size;
    return true;
  }
  void Truncate(size_t size) noexcept { size_ = size; }
  void Clear() noexcept { size_ = 0; }
  void Free() noexcept {
    if (data_ != nullptr) munmap(data_, capacity_ * sizeof(T));
    data_ = nullptr;
    size_ = capacity_ = 0;
  }

 private:
  static constexpr size_t kFirst = 4096 / sizeof(T) > 0 ? 4096 / sizeof(T) : 1;

  [[nodiscard]] bool Grow(size_t capacity) noexcept {
    void* const grown =
        data_ == nullptr
            ? mmap(nullptr, capacity * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
            : mremap(data_, capacity_ * sizeof(T), capacity * sizeof(T), MREMAP_MAYMOVE);
    if (grown == MAP_FAILED) return false;
    data_ = static_cast<T*>(grown);
    capacity_ = capacity;
    return true;
  }

  T* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace vramtrace::record
