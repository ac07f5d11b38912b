// What is the same for all bucketed codecs before they encode.
#pragma once
#include "cuda/pieces.cuh"

namespace arrcomp::cuda {

// Looks at the pieces that begin in each chunk.
template <class Real>
__global__ void __launch_bounds__(threads_per_block, least_bucket_blocks)
    piece_statistics_kernel(const __grid_constant__ PieceWork a, Moments moments) {
  for_each_unit(a.arrays, [&](const BucketEncodeArray& array, uint64_t chunk, uint64_t unit) {
    const Pieces pieces(array.plan, a.of_array);
#pragma unroll 1
    for (int i = 0; i < 2; ++i) {
      const Piece piece = i == 0 ? pieces.later_in(chunk) : pieces.first_in(chunk);
      if (piece.count == 0) continue;
      const BucketStatistics statistics =
          statistics_of<Real>(array.plan.element, array.source, piece.first, piece.count, moments);
      ChunkStatistics& found = a.statistics[unit];
      if (leader()) (i == 0 ? found.later_piece : found.first_piece) = statistics;
    }
  });
}

// Puts each run of pieces together, in the place of its first, where a bucket has several.
__global__ void __launch_bounds__(threads_per_block, least_bucket_blocks)
    join_runs_kernel(const __grid_constant__ PieceWork a) {
  __shared__ BucketStatistics memories[warps_per_block][lanes_per_row];
  BucketStatistics* const memory = memories[threadIdx.x / lanes_per_row];
  for_each_unit(a.arrays, [&](const BucketEncodeArray& array, uint64_t chunk, uint64_t unit) {
    const Pieces pieces(array.plan, a.of_array);
    ChunkStatistics* const found = a.statistics + unit;
    // Pieces of the run that begins with a piece, the bucket's `index`-th; none where there is one run alone.
    const auto in_run = [&](const Piece& piece, uint64_t index) -> uint64_t {
      if (piece.count == 0 || index % pieces_per_run != 0) return 0;
      const uint64_t all = pieces.of_bucket_at(piece.first - index * piece_size), left = all - index;
      if (all <= pieces_per_run) return 0;
      return left < pieces_per_run ? left : pieces_per_run;
    };
    const uint64_t from_first = in_run(pieces.first_in(chunk), 0);
    const uint64_t from_later = in_run(pieces.later_in(chunk), pieces.offset_of_later(chunk) / piece_size);
    if (from_first > 0) {
      const BucketStatistics run = join_pieces<true>(found, from_first, 1, memory);
      if (leader()) found->first_piece = run;
    }
    if (from_later > 0) {
      const BucketStatistics run = join_pieces<false>(found, from_later, 1, memory);
      if (leader()) found->later_piece = run;
    }
    sync();
  });
}

}  // namespace arrcomp::cuda
