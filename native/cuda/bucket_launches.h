// What each bucketed codec's .cu file offers the driver.
#pragma once
#include "cuda/bucket_arguments.h"
#include "cuda/shape.h"
#include "stream/codec.h"

namespace arrcomp::cuda {

// The launches for one arithmetic type.
struct BucketLaunches {
  void (*fit)(const Codec& codec, const StatisticsWork& work, const Seed& seed, const Shape& shape,
              cudaStream_t stream);
  void (*encode)(const Codec& codec, const BucketEncodeWork& work, const Shape& shape, cudaStream_t stream);
  void (*decode)(const Codec& codec, const BucketDecodeWork& work, const Shape& shape, cudaStream_t stream);
  void (*sum)(const Codec& codec, const SumWork& work, const Shape& shape, cudaStream_t stream);
  // `codec` and `result`, that of the terms and that of the sum, have the same type of settings.
  void (*encode_sum)(const Codec& codec, const Codec& result, const SumEncodeWork& work, const Shape& shape,
                     cudaStream_t stream);
};

// The launches for both.
struct BucketLaunchesOfReals {
  BucketLaunches float32, float64;
};

// The launches of the codec that has these settings: from the table, so that none can be forgotten.
#define ARRCOMP_DECLARE_LAUNCHES(id, name, Type, text) \
  extern const BucketLaunchesOfReals name##_launches;  \
  inline const BucketLaunchesOfReals* launches_of(const Type##Settings&) { return &name##_launches; }
ARRCOMP_BUCKETED_CODECS(ARRCOMP_DECLARE_LAUNCHES)
#undef ARRCOMP_DECLARE_LAUNCHES

template <Grouped Settings>
const BucketLaunchesOfReals* launches_of(const Settings&) {
  return nullptr;
}

// The launches of a codec of buckets.
inline const BucketLaunches& launches_of(const Codec& codec, const Element& element) {
  const auto visitor = [](const auto& settings) { return launches_of(settings); };
  const BucketLaunchesOfReals* reals = std::visit(visitor, codec.settings);
  return element.width == 64 ? reals->float64 : reals->float32;
}

}  // namespace arrcomp::cuda
