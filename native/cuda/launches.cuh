// How the kernels are launched. Included by one .cu file for each element type.
#pragma once
#include "cuda/base_delta_kernels.cuh"
#include "cuda/kernels.cuh"
#include "cuda/launch.cuh"
#include "cuda/launch.h"

namespace arrcomp::cuda {

// The launch of a kernel that takes these arguments alone, as a function.
template <auto kernel, uint64_t shared_bytes_of_warp = 0, class Arguments>
void launch_with(const Arguments& arguments, const Shape& shape, cudaStream_t stream) {
  launch<kernel, shared_bytes_of_warp>(shape, stream, arguments);
}

// Regular groups, then the others.
template <class T, int chunk_limit = most_chunks>
void launch_decode(const DecodeArguments& arguments, const Shape& shape, cudaStream_t stream) {
  launch<decode_regular_kernel<T, chunk_limit>, regular_shared_bytes<chunk_limit>>(shape, stream, arguments);
  launch<decode_kernel<T, chunk_limit>>(shape, stream, arguments);
}

template <class T>
inline constexpr CodesKernels codes_kernels{
    sizeof(MemoryOf<T, max_chunks_of_codes>), listed<encode_kernel<T, max_chunks_of_codes>, sizeof(EncodeShared<T>)>,
    launch_with<encode_kernel<T, max_chunks_of_codes>, sizeof(EncodeShared<T>)>, launch_decode<T, max_chunks_of_codes>};

// Codes have 32 or 64 bits: the kernels of a type of that width serve.
template <class T>
constexpr const CodesKernels* codes_kernels_of() {
  if constexpr (T::width >= 32) return &codes_kernels<T>;
  return nullptr;
}

template <class T>
constexpr Kernels kernels_of() {
  return {sizeof(MemoryOf<T>),
          listed<encode_kernel<T>, sizeof(EncodeShared<T>)>,
          launch_with<range_kernel<T>>,
          launch_with<encode_kernel<T>, sizeof(EncodeShared<T>)>,
          launch_decode<T>,
          launch_with<encode_base_delta_kernel<T>>,
          launch_with<decode_base_delta_kernel<T>>,
          codes_kernels_of<T>()};
}

}  // namespace arrcomp::cuda
