// How the kernels of a bucketed codec are launched. Included by one .cu file for each.
#pragma once
#include "cuda/bucket_kernels.cuh"
#include "cuda/bucket_launches.h"
#include "cuda/bucket_sums.cuh"
#include "cuda/launch.cuh"

namespace arrcomp::cuda {

template <class Coder>
constexpr auto encode_kernel_of() {
  if constexpr (HasExtras<Coder>) {
    return encode_extras_kernel<Coder>;
  } else {
    return encode_buckets_kernel<Coder>;
  }
}
template <class Coder>
constexpr auto decode_kernel_of() {
  if constexpr (HasExtras<Coder>) {
    return decode_extras_kernel<Coder>;
  } else {
    return decode_buckets_kernel<Coder>;
  }
}

// Null for codecs that have no sums.
template <class Coder>
constexpr auto launch_sum_of() -> decltype(BucketLaunches::sum) {
  using Settings = typename Coder::Settings;
  if constexpr (!HasSums<Settings>) {
    return nullptr;
  } else {
    return [](const Codec& codec, const SumWork& work, const Shape& shape, cudaStream_t stream) {
      launch<sum_buckets_kernel<Coder>>(shape, stream, {work, std::get<Settings>(codec.settings)});
    };
  }
}
template <class Coder>
constexpr auto launch_encode_sum_of() -> decltype(BucketLaunches::encode_sum) {
  using Settings = typename Coder::Settings;
  if constexpr (!HasSums<Settings>) {
    return nullptr;
  } else {
    return [](const Codec& codec, const Codec& result, const SumEncodeWork& work, const Shape& shape,
              cudaStream_t stream) {
      launch<encode_sum_kernel<Coder>>(shape, stream,
                                       {work, std::get<Settings>(codec.settings), std::get<Settings>(result.settings)});
    };
  }
}

template <class Coder>
constexpr BucketLaunches launches_of_coder() {
  using Settings = typename Coder::Settings;
  return {
      [](const Codec& codec, const StatisticsWork& work, const Seed& seed, const Shape& shape, cudaStream_t stream) {
        launch<fit_buckets_kernel<Coder>>(shape, stream, {work, seed, std::get<Settings>(codec.settings)});
      },
      [](const Codec& codec, const BucketEncodeWork& work, const Shape& shape, cudaStream_t stream) {
        launch<encode_kernel_of<Coder>()>(shape, stream, {work, std::get<Settings>(codec.settings)});
      },
      [](const Codec& codec, const BucketDecodeWork& work, const Shape& shape, cudaStream_t stream) {
        launch<decode_kernel_of<Coder>()>(shape, stream, {work, std::get<Settings>(codec.settings)});
      },
      launch_sum_of<Coder>(), launch_encode_sum_of<Coder>()};
}

template <template <class> class Coder>
constexpr BucketLaunchesOfReals launches_of_codec() {
  return {launches_of_coder<Coder<F32>>(), launches_of_coder<Coder<F64>>()};
}

}  // namespace arrcomp::cuda
