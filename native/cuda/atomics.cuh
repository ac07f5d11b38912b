// Numbers of 64 bits that all warps of a launch change.
#pragma once
#include <cstdint>

#include "lanes/lanes.h"

namespace arrcomp::cuda {

using AtomicNumber = unsigned long long;  // what CUDA calls uint64_t
static_assert(sizeof(AtomicNumber) == sizeof(uint64_t));

// Both are called by whole warps, and done once.
ARRCOMP_INLINE void add_atomically(uint64_t& number, uint64_t more) {
  if (leader()) atomicAdd(reinterpret_cast<AtomicNumber*>(&number), AtomicNumber{more});
}
ARRCOMP_INLINE void raise_atomically(uint64_t& number, uint64_t least) {
  if (leader()) atomicMax(reinterpret_cast<AtomicNumber*>(&number), AtomicNumber{least});
}

}  // namespace arrcomp::cuda
