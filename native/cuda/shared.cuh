// Arguments of kernels where lanes ask for different places, which would be slow to read from where arguments are.
#pragma once
#include <type_traits>

#include "cuda/warps.cuh"

namespace arrcomp::cuda {

// A copy, of 32-bit words, for all threads of the block, which call this together. It may have more: what these threads
// make of it.
template <class Copy, class Arguments>
ARRCOMP_INLINE const Copy& in_shared_memory_as(const Arguments& arguments) {
  static_assert(std::is_trivially_default_constructible_v<Copy>, "all threads would write its first values");
  __shared__ Copy copy;
  const auto* const from = reinterpret_cast<const uint8_t*>(&arguments);
  auto* const to = reinterpret_cast<uint8_t*>(&copy);
  for (unsigned at = 4 * threadIdx.x; at < sizeof(Arguments); at += 4 * blockDim.x)
    memcpy(__builtin_assume_aligned(to + at, 4), __builtin_assume_aligned(from + at, 4), 4);
  __syncthreads();
  if constexpr (!std::is_same_v<Copy, Arguments>) {
    copy.complete(threadIdx.x, blockDim.x);
    __syncthreads();
  }
  return copy;
}
template <class Arguments>
ARRCOMP_INLINE const Arguments& in_shared_memory(const Arguments& arguments) {
  return in_shared_memory_as<Arguments>(arguments);
}

// A warp's memory for one such object, which nobody has constructed. `Owner`: a type that one kernel alone has; what
// several kernels share is placed for all of them, with gaps between what is aligned.
template <class Object, class Owner = Object>
ARRCOMP_INLINE Object& warp_memory() {
  alignas(Object) __shared__ uint8_t memory[warps_per_block][sizeof(Object)];
  return *reinterpret_cast<Object*>(memory[warp_of_block()]);
}

// The memory of a warp among what the launch asks for.
template <class Memory>
ARRCOMP_INLINE Memory& dynamic_shared_memory() {
  static_assert(alignof(Memory) <= 16 && sizeof(Memory) % 16 == 0);
#ifdef __CUDACC__
  extern __shared__ uint4 memory[];
#else
  __shared__ uint4 memory[warps_per_block * sizeof(Memory) / sizeof(uint4)];  // emulated
#endif
  return reinterpret_cast<Memory*>(memory)[warp_of_block()];
}

}  // namespace arrcomp::cuda
