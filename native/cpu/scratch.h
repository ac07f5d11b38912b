// Large memory that a call needs for itself.
#pragma once
#include <cstdint>
#include <memory>
#include <new>

#ifdef __linux__
#include <sys/mman.h>
#endif

#include "memory.h"

namespace arrcomp::cpu {

// From C++'s operators: C's aligned_alloc is not on every system.
struct FreeScratch {
  std::align_val_t alignment{};
  void operator()(uint8_t* memory) const { ::operator delete(memory, alignment); }
};
using Scratch = std::unique_ptr<uint8_t[], FreeScratch>;

// Memory that is not set. In pages of 2 MiB where the system has them: new pages of 4 KiB take as long as half of the work
// that is done in them. Throws NoMemory.
inline Scratch scratch_memory(uint64_t bytes, const char* purpose) {
  constexpr uint64_t page = 1 << 21, cache_line = 64;
  const bool is_large = bytes >= 2 * page;
  const uint64_t unit = is_large ? page : cache_line;
  const uint64_t rounded = (bytes / unit + 1) * unit;
  const std::align_val_t alignment{unit};
  void* const memory = rounded > bytes ? ::operator new(rounded, alignment, std::nothrow) : nullptr;
  if (memory == nullptr) throw NoMemory(bytes, purpose);
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  if (is_large) madvise(memory, rounded, MADV_HUGEPAGE);  // a hint
#endif
  return Scratch(static_cast<uint8_t*>(memory), FreeScratch{alignment});
}

}  // namespace arrcomp::cpu
