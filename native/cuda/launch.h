// What each element type's .cu file offers the drivers.
#pragma once
#include <cuda_runtime_api.h>

#include <algorithm>

#include "cuda/arguments.h"

namespace arrcomp::cuda {

struct Kernels {
  uint64_t memory_bytes;  // of one warp that encodes
  cudaError_t (*resident_blocks)(int& blocks_per_processor);
  void (*widen_range)(const EncodeArguments& arguments, int blocks, cudaStream_t stream);
  void (*encode)(const EncodeArguments& arguments, int blocks, cudaStream_t stream);
  void (*decode)(const DecodeArguments& arguments, int blocks, cudaStream_t stream);
  void (*encode_base_delta)(const EncodeArguments& arguments, int blocks, cudaStream_t stream);
  void (*decode_base_delta)(const DecodeArguments& arguments, int blocks, cudaStream_t stream);
};

extern const Kernels bits8_kernels, float16_kernels, bfloat16_kernels, float32_kernels, float64_kernels;

inline const Kernels& kernels_of_element(const Element& element) {
  switch (element.width) {
    case 8: return bits8_kernels;
    case 16: return element.exponent_bits == 8 ? bfloat16_kernels : float16_kernels;
    case 32: return float32_kernels;
    default: return float64_kernels;
  }
}

inline int blocks_for(uint64_t units, int most) {
  return static_cast<int>(std::min<uint64_t>(ceil_div(units, warps_per_block), static_cast<uint64_t>(most)));
}

// The limit for kernels whose blocks need not all be resident.
constexpr int max_blocks = 1 << 20;

}  // namespace arrcomp::cuda
