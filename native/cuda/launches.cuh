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

template <class T>
constexpr Kernels kernels_of() {
  return {sizeof(MemoryOf<T>),
          listed<encode_kernel<T>>,
          launch_with<range_kernel<T>>,
          launch_with<encode_kernel<T>>,
          launch_with<decode_kernel<T>>,
          launch_with<encode_base_delta_kernel<T>>,
          launch_with<decode_base_delta_kernel<T>>};
}

}  // namespace arrcomp::cuda
