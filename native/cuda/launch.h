// What each element type's .cu file offers the drivers.
#pragma once
#include "cuda/shape.h"

namespace arrcomp::cuda {

// For the codes of predicted arrays, of which more chunks share a group.
struct CodesKernels {
  uint64_t memory_bytes;  // of one warp that encodes
  const ListedKernel& encoder;
  void (*encode)(const EncodeArguments& arguments, const Shape& shape, cudaStream_t stream);
  void (*decode)(const DecodeArguments& arguments, const Shape& shape, cudaStream_t stream);
};

struct Kernels {
  uint64_t memory_bytes;  // of one warp that encodes
  const ListedKernel& encoder;
  void (*widen_range)(const EncodeArguments& arguments, const Shape& shape, cudaStream_t stream);
  void (*encode)(const EncodeArguments& arguments, const Shape& shape, cudaStream_t stream);
  void (*decode)(const DecodeArguments& arguments, const Shape& shape, cudaStream_t stream);
  void (*encode_base_delta)(const EncodeArguments& arguments, const Shape& shape, cudaStream_t stream);
  void (*decode_base_delta)(const DecodeArguments& arguments, const Shape& shape, cudaStream_t stream);
  const CodesKernels* codes;  // null where no codes have this width
};

// As many warps as the device holds at a time: each has memory of its own.
template <class AnyKernels>
Shape encoder_shape(const AnyKernels& kernels, uint64_t groups, const Device& device) {
  return shape_for(device, groups, device.resident(kernels.encoder));
}

extern const Kernels bits8_kernels, float16_kernels, bfloat16_kernels, float32_kernels, float64_kernels;

inline const Kernels& kernels_of_element(const Element& element) {
  switch (element.width) {
    case 8: return bits8_kernels;
    case 16: return element.exponent_bits == 8 ? bfloat16_kernels : float16_kernels;
    case 32: return float32_kernels;
    default: return float64_kernels;
  }
}

}  // namespace arrcomp::cuda
