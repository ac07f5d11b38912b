// What each bucketed codec's .cu file offers the driver.
#pragma once
#include <cuda_runtime_api.h>

#include "cuda/bucket_arguments.h"
#include "stream/codec.h"

namespace arrcomp::cuda {

// Of one type of elements.
struct BucketLaunches {
  void (*store_numbers)(const Codec& codec, const PieceWork& work, const Seed& seed, int blocks, cudaStream_t stream);
  void (*encode)(const Codec& codec, const BucketEncodeWork& work, int blocks, cudaStream_t stream);
  void (*decode)(const Codec& codec, const BucketDecodeWork& work, int blocks, cudaStream_t stream);
  void (*sum)(const Codec& codec, const SumWork& work, int blocks, cudaStream_t stream);
  // `codec` and `result`, that of the terms and that of the sum, have the same type of settings.
  void (*encode_sum)(const Codec& codec, const Codec& result, const SumEncodeWork& work, int blocks,
                     cudaStream_t stream);
};

// Of all types that these codecs take.
struct BucketLaunchesOfTypes {
  BucketLaunches float16, bfloat16, float32, float64;
};

extern const BucketLaunchesOfTypes qsgd_launches, smaq_launches, float_format_launches, s2fp8_launches,
    codebook_launches;

inline const BucketLaunchesOfTypes& launches_of(const Codec& codec) {
  switch (codec.id) {
    case CodecId::smaq: return smaq_launches;
    case CodecId::float_format: return float_format_launches;
    case CodecId::s2fp8: return s2fp8_launches;
    case CodecId::codebook: return codebook_launches;
    default: return qsgd_launches;
  }
}

inline const BucketLaunches& launches_of(const Codec& codec, const Element& element) {
  const BucketLaunchesOfTypes& types = launches_of(codec);
  if (element.width == 64) return types.float64;
  if (element.width == 32) return types.float32;
  return element.exponent_bits == 8 ? types.bfloat16 : types.float16;
}

}  // namespace arrcomp::cuda
