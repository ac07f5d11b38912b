// Memory whose lack is told in words.
#pragma once
#include <cstddef>
#include <cstdio>
#include <memory>
#include <new>

namespace arrcomp {

// What is thrown where there is no memory; Python's MemoryError says it.
class NoMemory : public std::bad_alloc {
 public:
  NoMemory(size_t bytes, const char* purpose) {
    snprintf(text_, sizeof text_, "no memory for %s: %zu bytes", purpose, bytes);
  }
  const char* what() const noexcept override { return text_; }

 private:
  char text_[120];
};

// Memory for `count` values, which are not set. Throws NoMemory.
template <class T>
std::unique_ptr<T[]> allocated(size_t count, const char* purpose) {
  T* const values = new (std::nothrow) T[count];
  if (values == nullptr) throw NoMemory(count * sizeof(T), purpose);
  return std::unique_ptr<T[]>(values);
}

}  // namespace arrcomp
