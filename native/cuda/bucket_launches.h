// What each bucketed codec's .cu file offers the driver.
#pragma once
#include <cuda_runtime_api.h>

#include "cuda/bucket_arguments.h"
#include "stream/codec.h"

namespace arrcomp::cuda {

// Of one arithmetic type.
struct BucketLaunches {
  void (*store_numbers)(const Codec& codec, const PieceWork& work, const Seed& seed, int blocks, cudaStream_t stream);
  void (*encode)(const Codec& codec, const BucketEncodeWork& work, int blocks, cudaStream_t stream);
  void (*decode)(const Codec& codec, const BucketDecodeWork& work, int blocks, cudaStream_t stream);
  void (*sum)(const Codec& codec, const SumWork& work, int blocks, cudaStream_t stream);
  // `codec` and `result`, that of the terms and that of the sum, have the same type of settings.
  void (*encode_sum)(const Codec& codec, const Codec& result, const SumEncodeWork& work, int blocks,
                     cudaStream_t stream);
};

// Of both.
struct BucketLaunchesOfReals {
  BucketLaunches float32, float64;
};

extern const BucketLaunchesOfReals qsgd_launches, smaq_launches, float_format_launches, s2fp8_launches,
    codebook_launches;

inline const BucketLaunchesOfReals& launches_of(const Codec& codec) {
  switch (codec.id) {
    case CodecId::smaq: return smaq_launches;
    case CodecId::float_format: return float_format_launches;
    case CodecId::s2fp8: return s2fp8_launches;
    case CodecId::codebook: return codebook_launches;
    default: return qsgd_launches;
  }
}

inline const BucketLaunches& launches_of(const Codec& codec, const Element& element) {
  const BucketLaunchesOfReals& reals = launches_of(codec);
  return element.width == 64 ? reals.float64 : reals.float32;
}

}  // namespace arrcomp::cuda
