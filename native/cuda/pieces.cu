#include "cuda/piece_kernels.cuh"
#include "cuda/pieces.h"

namespace arrcomp::cuda {

void look_at_pieces(const Element& element, const PieceWork& work, Moments moments, int blocks, cudaStream_t stream) {
  visit_real(element, [&](auto real) {
    piece_statistics_kernel<decltype(real)><<<blocks, threads_per_block, 0, stream>>>(work, moments);
  });
}

void join_runs(const PieceWork& work, int blocks, cudaStream_t stream) {
  join_runs_kernel<<<blocks, threads_per_block, 0, stream>>>(work);
}

}  // namespace arrcomp::cuda
