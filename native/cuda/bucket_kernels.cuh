// Bucketed codecs as kernels: one warp encodes or decodes one unit. Where everything stands follows from the plan.
#pragma once
#define ARRCOMP_MACHINE cuda
#include "codecs/bucket_chunks.h"
#include "cuda/bucket_arguments.h"
#include "cuda/cuts.h"
#include "cuda/warps.cuh"

namespace arrcomp::cuda {

constexpr int least_bucket_blocks = 6;  // on a processor: leaves a thread 80 registers

// Calls visit(array, unit of the array, unit of the call) for each unit that this warp takes.
template <class Array, class Visitor>
ARRCOMP_INLINE void for_each_unit(const ArrayList<Array>& list, Visitor visit) {
  const Array* const arrays = list.begin();
  for (uint64_t unit = warp_of_grid(); unit < list.units; unit += warps_of_grid()) {
    const Array& array = arrays[array_of_unit(arrays, list.count, unit)];
    visit(array, unit - array.first_unit, unit);
  }
}

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

// All of a payload but the numbers, the codes and the elements that are stored as they are.
ARRCOMP_INLINE void finish_payload(const BucketEncodeArray& array, const QsgdSettings& settings) {
  const BucketPlan& plan = array.plan;
  const uint64_t numbers = plan.buckets * static_cast<uint64_t>(settings.numbers()) * number_bytes(plan.element);
  for (uint64_t b = numbers; b < plan.codes_offset; ++b) array.payload[b] = 0;
  const uint64_t tail = plan.tail_offset + (plan.count - plan.quantized) * (plan.element.width / 8);
  for (uint64_t b = tail; b < plan.length; ++b) array.payload[b] = 0;
  *array.length = plan.length;
}

template <class T>
__global__ void __launch_bounds__(threads_per_block, least_bucket_blocks)
    encode_buckets_kernel(const __grid_constant__ BucketEncodeArguments a) {
  using Memory = BucketMemory<typename T::Real::scalar>;
  __shared__ Memory memories[warps_per_block];
  Memory& memory = memories[threadIdx.x / lanes_per_row];
  const uint64_t seed = a.seed.at == nullptr ? a.seed.value : read_number(a.seed.at);
  for_each_unit(a.arrays, [&](const BucketEncodeArray& array, uint64_t unit, uint64_t) {
    const BucketContext context{array.plan, a.settings};
    if (unit < context.plan.chunks()) {
      BucketChunk<T>(context, unit).encode(array.source, array.payload, seed, memory);
    } else {
      const TailPart part(context.plan, unit);
      copy_elements<T>(array.source, context.plan.quantized + part.first, array.payload + context.plan.tail_offset,
                       part.first, part.count);
    }
    if (unit == 0 && leader()) finish_payload(array, a.settings);
  });
}

template <class T>
__global__ void __launch_bounds__(threads_per_block, least_bucket_blocks)
    decode_buckets_kernel(const __grid_constant__ BucketDecodeArguments a) {
  bool ok = true;
  for_each_unit(a.arrays, [&](const BucketDecodeArray& array, uint64_t unit, uint64_t) {
    const BucketContext context{array.plan, a.settings};
    const uint64_t length = array.payload_length();
    if (length > array.limit || length != context.plan.length) {
      ok = false;
    } else if (unit < context.plan.chunks()) {
      BucketChunk<T>(context, unit).decode(array.payload, array.target);
    } else {
      const TailPart part(context.plan, unit);
      copy_elements<T>(array.payload + context.plan.tail_offset, part.first, array.target,
                       context.plan.quantized + part.first, part.count);
    }
  });
  if (!ok && leader()) atomicOr(a.status, 1u);
}

// ---- buckets larger than a piece

// A piece of a bucket: its elements. None where `count` is 0.
struct Piece {
  uint64_t first, count;

  // The piece that begins at `first`, which is `offset` elements behind the bucket's beginning.
  ARRCOMP_SHARED static Piece of(const BucketContext& context, uint64_t first, uint64_t offset) {
    const uint64_t left_of_bucket = context.settings.bucket_size - offset;
    const uint64_t left_of_array = context.plan.quantized - first;
    const uint64_t left = left_of_bucket < left_of_array ? left_of_bucket : left_of_array;
    return {first, left < piece_size ? left : piece_size};
  }
};

// The first piece of the bucket that begins in a chunk; none in the units behind the chunks.
ARRCOMP_SHARED Piece first_piece_in(const BucketContext& context, uint64_t chunk) {
  const uint64_t first = round_up(chunk * chunk_size, context.settings.bucket_size);
  if (first >= (chunk + 1) * chunk_size || first >= context.plan.quantized) return {0, 0};
  return Piece::of(context, first, 0);
}

// The piece that begins in a chunk and is not the first of its bucket; none in the units behind the chunks.
ARRCOMP_SHARED Piece later_piece_in(const BucketContext& context, uint64_t chunk) {
  const uint64_t offset = chunk * chunk_size % context.settings.bucket_size, its_offset = round_up(offset, piece_size);
  const uint64_t first = chunk * chunk_size - offset + its_offset;
  if (offset == 0 || its_offset >= context.settings.bucket_size || first >= context.plan.quantized) return {0, 0};
  return Piece::of(context, first, its_offset);
}

// Looks at the pieces that begin in each chunk.
template <class T>
__global__ void __launch_bounds__(threads_per_block, least_bucket_blocks)
    bucket_statistics_kernel(const __grid_constant__ BucketEncodeArguments a) {
  for_each_unit(a.arrays, [&](const BucketEncodeArray& array, uint64_t chunk, uint64_t unit) {
    const BucketContext context{array.plan, a.settings};
#pragma unroll 1
    for (int i = 0; i < 2; ++i) {
      const Piece piece = i == 0 ? later_piece_in(context, chunk) : first_piece_in(context, chunk);
      if (piece.count == 0) continue;
      const BucketStatistics statistics =
          statistics_of<T>(context.plan.element, array.source, piece.first, piece.count, a.settings.norm == Norm::l2);
      ChunkStatistics& found = a.statistics[unit];
      if (leader()) (i == 0 ? found.later_piece : found.first_piece) = statistics;
    }
  });
}

// The statistics of a bucket's pieces, put together in order; `found` is that of the chunk where the bucket begins.
// `memory` has room for a row.
ARRCOMP_INLINE BucketStatistics join_pieces(const ChunkStatistics* found, uint64_t pieces, BucketStatistics* memory) {
  BucketStatistics all = BucketStatistics::none();
  for (uint64_t first = 0; first < pieces; first += lanes_per_row) {
    const uint64_t count = pieces - first < lanes_per_row ? pieces - first : lanes_per_row;
    const uint64_t own = first + static_cast<uint64_t>(lane());
    sync();
    if (own < pieces) memory[lane()] = own == 0 ? found->first_piece : found[own].later_piece;
    sync();
    for (uint64_t i = 0; i < count; ++i) all.add(memory[i]);
  }
  return all;
}

// Writes the numbers of the bucket that begins in each chunk.
template <class T>
__global__ void __launch_bounds__(threads_per_block, least_bucket_blocks)
    bucket_numbers_kernel(const __grid_constant__ BucketEncodeArguments a) {
  __shared__ BucketStatistics memories[warps_per_block][lanes_per_row];
  BucketStatistics* const memory = memories[threadIdx.x / lanes_per_row];
  for_each_unit(a.arrays, [&](const BucketEncodeArray& array, uint64_t chunk, uint64_t unit) {
    const BucketContext context{array.plan, a.settings};
    const Piece piece = first_piece_in(context, chunk);
    if (piece.count == 0) return;
    const uint64_t size = a.settings.bucket_size, left = context.plan.quantized - piece.first;
    const BucketStatistics all = join_pieces(a.statistics + unit, pieces_of_bucket(size < left ? size : left), memory);
    if (leader()) store_bucket<T>(context, all, array.payload, piece.first / size);
  });
}

}  // namespace arrcomp::cuda
