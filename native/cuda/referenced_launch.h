// What each element type's .cu file of arrays with a reference offers the driver.
#pragma once
#include "backend.h"
#include "cuda/device.h"

namespace arrcomp::cuda {

struct ReferenceKernels {
  void (*encode)(const StreamOfDevice& on, const Codec& codec, const Element& element, const EncodeTask& task,
                 uint64_t* length, void* scratch);
  void (*decode)(const StreamOfDevice& on, const Element& element, const DecodeTask& task, uint32_t* status,
                 void* scratch);
};

extern const ReferenceKernels referenced_bits8_kernels, referenced_float16_kernels, referenced_bfloat16_kernels,
    referenced_float32_kernels, referenced_float64_kernels;

inline const ReferenceKernels& reference_kernels_of_element(const Element& element) {
  switch (element.width) {
    case 8: return referenced_bits8_kernels;
    case 16: return element.exponent_bits == 8 ? referenced_bfloat16_kernels : referenced_float16_kernels;
    case 32: return referenced_float32_kernels;
    default: return referenced_float64_kernels;
  }
}

}  // namespace arrcomp::cuda
