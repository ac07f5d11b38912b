// What is the same for all bucketed codecs before they encode.
#pragma once
#include "cuda/segments.cuh"

namespace arrcomp::cuda {

// Looks at the segments that begin in each chunk.
template <class Real>
__global__ void __launch_bounds__(threads_per_block, min_bucket_blocks)
    statistics_kernel(const __grid_constant__ StatisticsWork a, Moments moments) {
  for_each_unit(a.arrays, [&](const BucketEncodeArray& array, uint64_t chunk, uint64_t unit) {
    const Segments segments(array.plan, a.of_array);
#pragma unroll 1
    for (int i = 0; i < 2; ++i) {
      const Segment segment = i == 0 ? segments.later_in(chunk) : segments.first_in(chunk);
      if (segment.count == 0) continue;
      const StoredElements values{array.plan.element, array.source, segment.first, segment.count};
      const BucketStatistics statistics = statistics_of<Real>(values, segment.count, moments);
      ChunkStatistics& found = a.statistics[unit];
      if (leader()) (i == 0 ? found.later_segment : found.first_segment) = statistics;
    }
  });
}

// Puts each run of segments together, in the place of its first, where a bucket has several.
__global__ void __launch_bounds__(threads_per_block, min_bucket_blocks)
    join_runs_kernel(const __grid_constant__ StatisticsWork a) {
  __shared__ BucketStatistics memories[warps_per_block][lanes_per_row];
  BucketStatistics* const memory = memories[threadIdx.x / lanes_per_row];
  for_each_unit(a.arrays, [&](const BucketEncodeArray& array, uint64_t chunk, uint64_t unit) {
    const Segments segments(array.plan, a.of_array);
    ChunkStatistics* const found = a.statistics + unit;
    // Segments of the run that begins with a segment, the bucket's `index`-th; none where there is one run alone.
    const auto in_run = [&](const Segment& segment, uint64_t index) -> uint64_t {
      if (segment.count == 0 || index % segments_per_run != 0) return 0;
      const uint64_t all = segments.of_bucket_at(segment.first - index * segment_size), left = all - index;
      if (all <= segments_per_run) return 0;
      return left < segments_per_run ? left : segments_per_run;
    };
    const uint64_t from_first = in_run(segments.first_in(chunk), 0);
    const uint64_t from_later = in_run(segments.later_in(chunk), segments.offset_of_later(chunk) / segment_size);
    if (from_first > 0) {
      const BucketStatistics run = join_segments<true>(found, from_first, 1, memory);
      if (leader()) found->first_segment = run;
    }
    if (from_later > 0) {
      const BucketStatistics run = join_segments<false>(found, from_later, 1, memory);
      if (leader()) found->later_segment = run;
    }
    sync();
  });
}

}  // namespace arrcomp::cuda
