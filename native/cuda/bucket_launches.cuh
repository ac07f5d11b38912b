// How the kernels of a bucketed codec are launched. Included by one .cu file for each.
#pragma once
#include "cuda/bucket_kernels.cuh"
#include "cuda/bucket_launches.h"
#include "cuda/bucket_sums.cuh"
#include "cuda/launch.cuh"

namespace arrcomp::cuda {

// Whether the first chunks of arrays, and what is behind them, are there to be coded. Of several arrays it is not known.
struct Shares {
  bool windows, rest;
};
template <class Array, class InWindows>
Shares shares_of(const ArrayList<Array>& list, InWindows in_windows) {
  if (list.count != 1) return {true, true};
  const uint64_t chunks = in_windows(list.single);
  return {chunks > 0, chunks < list.units};
}

template <class Coder>
void launch_encode(const Codec& codec, const BucketEncodeWork& work, const Shape& shape, cudaStream_t stream) {
  const auto settings = ready_to_encode(std::get<typename Coder::Settings>(codec.settings));
  bool has_rest = true;
  if constexpr (HasWindows<Coder>) {
    const Shares shares = shares_of(
        work.arrays, [&](const BucketEncodeArray& array) { return encoded_in_windows<Coder>(array, settings); });
    if constexpr (!FitsRows<Coder>) {
      if (shares.windows) launch<fit_chunks_kernel<Coder>>(shape, stream, {work, settings});
    }
    if (shares.windows) launch<encode_windows_kernel_of<Coder>()>(shape, stream, {work, settings});
    has_rest = shares.rest;
  }
  if (has_rest) launch<encode_kernel_of<Coder>()>(shape, stream, {work, settings});
}

template <class Coder>
void launch_decode(const Codec& codec, const BucketDecodeWork& work, const Shape& shape, cudaStream_t stream) {
  const auto& settings = std::get<typename Coder::Settings>(codec.settings);
  bool has_rest = true;
  if constexpr (HasWindows<Coder>) {
    const Shares shares =
        shares_of(work.arrays, [](const BucketDecodeArray& array) { return decoded_in_windows<Coder>(array); });
    if (shares.windows) launch<decode_windows_kernel_of<Coder>()>(shape, stream, {work, settings});
    has_rest = shares.rest;
  }
  if (has_rest) launch<decode_kernel_of<Coder>()>(shape, stream, {work, settings});
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
      launch_encode<Coder>, launch_decode<Coder>, launch_sum_of<Coder>(), launch_encode_sum_of<Coder>()};
}

template <template <class> class Coder>
constexpr BucketLaunchesOfReals launches_of_codec() {
  return {launches_of_coder<Coder<F32>>(), launches_of_coder<Coder<F64>>()};
}

}  // namespace arrcomp::cuda
