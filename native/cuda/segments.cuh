// Buckets larger than a segment, and arrays as a whole, are looked at in segments, each by the warp of the chunk in
// which it begins; then what was found is put together in order.
#pragma once
#define ARRCOMP_ISA cuda
#include "codecs/bucketed/bucket_statistics.h"
#include "cuda/bucket_arguments.h"
#include "cuda/tiling.h"
#include "cuda/warps.cuh"

namespace arrcomp::cuda {

constexpr int min_bucket_blocks = 6;  // on a processor: leaves a thread 80 registers

// Calls visit(array, unit of the array, unit of the call) for each unit that this warp takes. Units are counted in rounds,
// mostly one: `round` is a number of this lane, in memory where it has no register left.
template <class Array, class Visitor>
ARRCOMP_INLINE void for_each_unit(const ArrayList<Array>& list, uint32_t& round, Visitor visit) {
  const Array* const arrays = list.begin();
  for (round = 0;; ++round) {
    const uint64_t unit = warp_of_grid() + round * warps_of_grid();
    if (unit >= list.units) return;
    const Array& array = arrays[array_of_unit(arrays, list.count, unit)];
    visit(array, unit - array.first_unit, unit);
  }
}
template <class Array, class Visitor>
ARRCOMP_INLINE void for_each_unit(const ArrayList<Array>& list, Visitor visit) {
  uint32_t round;
  for_each_unit(list, round, visit);
}

// A segment of a bucket: its elements. None where `count` is 0.
struct Segment {
  uint64_t first, count;
};

// How the buckets of an array are cut, or the array as one bucket. In units behind the chunks no segment begins.
struct Segments {
  uint64_t size, quantized;  // of a bucket, of the array

  ARRCOMP_SHARED Segments(const BucketPlan& plan, bool of_array)
      : size(of_array ? (plan.quantized > 0 ? plan.quantized : 1) : plan.bucket_size), quantized(plan.quantized) {}

  // Segments of the bucket that begins at `first`.
  ARRCOMP_SHARED uint64_t of_bucket_at(uint64_t first) const {
    const uint64_t left = quantized - first;
    return segments_of_bucket(size < left ? size : left);
  }

  // The first segment of the bucket that begins in a chunk.
  ARRCOMP_SHARED Segment first_in(uint64_t chunk) const {
    const uint64_t first = round_up(chunk * chunk_size, size);
    if (first >= (chunk + 1) * chunk_size || first >= quantized) return {0, 0};
    return at(first, 0);
  }

  // The segment that begins in a chunk and is not the first of its bucket.
  ARRCOMP_SHARED Segment later_in(uint64_t chunk) const {
    const uint64_t offset = offset_of_later(chunk), first = chunk * chunk_size - chunk * chunk_size % size + offset;
    if (offset == 0 || offset >= size || first >= quantized) return {0, 0};
    return at(first, offset);
  }

  // Where it begins in its bucket.
  ARRCOMP_SHARED uint64_t offset_of_later(uint64_t chunk) const {
    return round_up(chunk * chunk_size % size, segment_size);
  }

 private:
  // The segment that begins at `first`, which is `offset` elements behind the bucket's beginning.
  ARRCOMP_SHARED Segment at(uint64_t first, uint64_t offset) const {
    const uint64_t left_of_bucket = size - offset, left_of_array = quantized - first;
    const uint64_t left = left_of_bucket < left_of_array ? left_of_bucket : left_of_array;
    return {first, left < segment_size ? left : segment_size};
  }
};

// The statistics of `count` segments put together in order: every `stride`-th from the one that begins in the chunk
// `found`, where it is the first of its bucket or not. `memory` has room for a row.
template <bool from_first>
ARRCOMP_INLINE BucketStatistics join_segments(const ChunkStatistics* found, uint64_t count, uint64_t stride,
                                              BucketStatistics* memory) {
  BucketStatistics all = BucketStatistics::none();
  for (uint64_t done = 0; done < count; done += lanes_per_row) {
    const uint64_t row = count - done < lanes_per_row ? count - done : lanes_per_row;
    const uint64_t own = done + static_cast<uint64_t>(lane());
    sync();
    if (own < count) memory[lane()] = from_first && own == 0 ? found->first_segment : found[own * stride].later_segment;
    sync();
    for (uint64_t i = 0; i < row; ++i) all.add(memory[i]);
  }
  return all;
}

}  // namespace arrcomp::cuda
