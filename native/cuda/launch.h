// What each element type's .cu file offers the driver.
#pragma once
#include <cuda_runtime_api.h>

#include "cuda/arguments.h"

namespace arrcomp::cuda {

struct Kernels {
  uint64_t memory_bytes;  // of one warp that encodes
  cudaError_t (*resident_blocks)(int& blocks_per_processor);
  void (*widen_range)(const EncodeArguments& arguments, int blocks, cudaStream_t stream);
  void (*encode)(const EncodeArguments& arguments, int blocks, cudaStream_t stream);
  void (*decode)(const DecodeArguments& arguments, int blocks, cudaStream_t stream);
};

extern const Kernels bits8_kernels, float16_kernels, bfloat16_kernels, float32_kernels, float64_kernels;

}  // namespace arrcomp::cuda
