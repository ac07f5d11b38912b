// How the kernels are launched. Included by one .cu file for each element type.
#pragma once
#include "cuda/base_delta_kernels.cuh"
#include "cuda/kernels.cuh"
#include "cuda/launch.h"

namespace arrcomp::cuda {

template <class T>
cudaError_t resident_blocks(int& blocks) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, encode_kernel<T>, threads_per_block, 0);
}

template <class T>
constexpr Kernels kernels_of() {
  return {sizeof(MemoryOf<T>),
          resident_blocks<T>,
          [](const EncodeArguments& a, int blocks, cudaStream_t stream) {
            range_kernel<T><<<blocks, threads_per_block, 0, stream>>>(a);
          },
          [](const EncodeArguments& a, int blocks, cudaStream_t stream) {
            encode_kernel<T><<<blocks, threads_per_block, 0, stream>>>(a);
          },
          [](const DecodeArguments& a, int blocks, cudaStream_t stream) {
            decode_regular_kernel<T><<<blocks, threads_per_block, 0, stream>>>(a);
            decode_kernel<T><<<blocks, threads_per_block, 0, stream>>>(a);
          },
          [](const EncodeArguments& a, int blocks, cudaStream_t stream) {
            encode_base_delta_kernel<T><<<blocks, threads_per_block, 0, stream>>>(a);
          },
          [](const DecodeArguments& a, int blocks, cudaStream_t stream) {
            decode_base_delta_kernel<T><<<blocks, threads_per_block, 0, stream>>>(a);
          }};
}

}  // namespace arrcomp::cuda
