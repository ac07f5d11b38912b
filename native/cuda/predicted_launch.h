// What each element type's .cu file of predicted arrays offers the driver.
#pragma once
#include "backend.h"
#include "cuda/device.h"

namespace arrcomp::cuda {

struct PredictedKernels {
  void (*encode)(const StreamOfDevice& on, const Codec& codec, const Element& element, const EncodeTask& task,
                 uint64_t* length, void* scratch);
  void (*decode)(const StreamOfDevice& on, const Element& element, const DecodeTask& task, uint32_t* status,
                 void* scratch);
};

extern const PredictedKernels predicted_float16_kernels, predicted_bfloat16_kernels, predicted_float32_kernels,
    predicted_float64_kernels;
extern const PredictedKernels predicted_int8_kernels, predicted_uint8_kernels, predicted_int16_kernels,
    predicted_uint16_kernels, predicted_int32_kernels, predicted_uint32_kernels, predicted_int64_kernels,
    predicted_uint64_kernels;

inline const PredictedKernels& predicted_kernels_of_integer(const Element& element) {
  switch (element.width) {
    case 8: return element.is_signed ? predicted_int8_kernels : predicted_uint8_kernels;
    case 16: return element.is_signed ? predicted_int16_kernels : predicted_uint16_kernels;
    case 32: return element.is_signed ? predicted_int32_kernels : predicted_uint32_kernels;
    default: return element.is_signed ? predicted_int64_kernels : predicted_uint64_kernels;
  }
}

inline const PredictedKernels& predicted_kernels_of_element(const Element& element) {
  if (!element.is_float()) return predicted_kernels_of_integer(element);
  switch (element.width) {
    case 16: return element.exponent_bits == 8 ? predicted_bfloat16_kernels : predicted_float16_kernels;
    case 32: return predicted_float32_kernels;
    default: return predicted_float64_kernels;
  }
}

}  // namespace arrcomp::cuda
