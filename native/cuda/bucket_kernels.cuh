// Bucketed codecs as kernels: one warp encodes or decodes one unit. Where everything stands follows from the plan.
#pragma once
#define ARRCOMP_MACHINE cuda
#include "codecs/bucket_codecs.h"
#include "cuda/bucket_arguments.h"
#include "cuda/cuts.h"
#include "cuda/pieces.cuh"
#include "cuda/warps.cuh"

namespace arrcomp::cuda {

template <class T>
ARRCOMP_INLINE void copy_elements(const void* from, uint64_t from_first, void* to, uint64_t to_first, uint64_t count) {
  for (uint64_t i = 0; i < count; i += lanes_per_row) {
    const int n = count - i < lanes_per_row ? static_cast<int>(count - i) : lanes_per_row;
    store_elements<T>(to, to_first + i, n, load_elements<T>(from, from_first + i, n));
  }
}

// Elements that are stored as they are, of a unit behind the chunks: [first, first + count) of them.
struct TailPart {
  uint64_t first, count;

  ARRCOMP_SHARED TailPart(const BucketPlan& plan, uint64_t unit) {
    const uint64_t tail = plan.count - plan.quantized;
    first = (unit - plan.chunks()) * chunk_size;
    count = tail - first < chunk_size ? tail - first : chunk_size;
  }
};

// All of a payload but the numbers, the codes and the elements that are stored as they are; of an empty array all.
ARRCOMP_INLINE void finish_payload(const BucketEncodeArray& array) {
  const BucketPlan& plan = array.plan;
  const auto clear = [&](uint64_t begin, uint64_t end) {
    for (uint64_t b = begin; b < end; ++b) array.payload[b] = 0;
  };
  if (plan.quantized == 0) clear(0, plan.buckets_offset);
  clear(plan.buckets_end(), plan.codes_offset);
  clear(plan.tail_offset + plan.tail_bytes(), plan.length);
  *array.length = plan.length;
}

ARRCOMP_INLINE uint64_t read_seed(const Seed& seed) { return seed.at == nullptr ? seed.value : read_number(seed.at); }

// Writes the numbers of the bucket that begins in each chunk, or those of each array.
template <class Coder>
__global__ void __launch_bounds__(threads_per_block, least_bucket_blocks)
    bucket_numbers_kernel(const __grid_constant__ NumbersArguments<typename Coder::Settings> a) {
  __shared__ BucketStatistics memories[warps_per_block][lanes_per_row];
  BucketStatistics* const memory = memories[threadIdx.x / lanes_per_row];
  const uint64_t seed = read_seed(a.seed);
  for_each_unit(a.work.arrays, [&](const BucketEncodeArray& array, uint64_t chunk, uint64_t unit) {
    const Pieces pieces(array.plan, a.work.of_array);
    const Piece piece = pieces.first_in(chunk);
    if (piece.count == 0) return;
    const uint64_t runs = ceil_div(pieces.of_bucket_at(piece.first), pieces_per_run);
    const BucketStatistics all =
        runs > 1 ? join_pieces<true>(a.work.statistics + unit, runs, pieces_per_run, memory)
                 : join_pieces<true>(a.work.statistics + unit, pieces.of_bucket_at(piece.first), 1, memory);
    if (!a.work.of_array) {
      const BucketContext<Coder> context{array.plan, a.settings};
      store_bucket(context, all, array.source, array.payload, seed, piece.first / array.plan.bucket_size);
    } else if constexpr (requires { Coder::store_array(a.settings, array.payload, all); }) {
      Coder::store_array(a.settings, array.payload, all);
    }
  });
}

template <class Coder>
__global__ void __launch_bounds__(threads_per_block, least_bucket_blocks)
    encode_buckets_kernel(const __grid_constant__ BucketArguments<BucketEncodeWork, typename Coder::Settings> a) {
  __shared__ BucketMemory<Coder> memories[warps_per_block];
  BucketMemory<Coder>& memory = memories[threadIdx.x / lanes_per_row];
  const uint64_t seed = read_seed(a.work.seed);
  for_each_unit(a.work.arrays, [&](const BucketEncodeArray& array, uint64_t unit, uint64_t) {
    const BucketPlan& plan = array.plan;
    if (unit < plan.chunks()) {
      const BucketContext<Coder> context{plan, a.settings};
      BucketChunk<Coder>(context, unit, array.payload).encode(array.source, array.payload, seed, memory);
    } else {
      const TailPart part(plan, unit);
      copy_elements<typename Coder::Type>(array.source, plan.quantized + part.first, array.payload + plan.tail_offset,
                                          part.first, part.count);
    }
    if (unit == 0 && leader()) finish_payload(array);
  });
}

template <class Coder>
__global__ void __launch_bounds__(threads_per_block, least_bucket_blocks)
    decode_buckets_kernel(const __grid_constant__ BucketArguments<BucketDecodeWork, typename Coder::Settings> a) {
  bool ok = true;
  for_each_unit(a.work.arrays, [&](const BucketDecodeArray& array, uint64_t unit, uint64_t) {
    const BucketPlan& plan = array.plan;
    const uint64_t length = array.payload_length();
    if (length > array.limit || length != plan.length) {
      ok = false;
    } else if (unit < plan.chunks()) {
      const BucketContext<Coder> context{plan, a.settings};
      BucketChunk<Coder>(context, unit, array.payload).decode(array.payload, array.target);
    } else {
      const TailPart part(plan, unit);
      copy_elements<typename Coder::Type>(array.payload + plan.tail_offset, part.first, array.target,
                                          plan.quantized + part.first, part.count);
    }
  });
  if (!ok && leader()) atomicOr(a.work.status, 1u);
}

}  // namespace arrcomp::cuda
