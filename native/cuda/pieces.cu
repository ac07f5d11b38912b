#include "cuda/piece_kernels.cuh"
#include "cuda/pieces.h"

namespace arrcomp::cuda {

void look_at_pieces(const Element& element, const PieceWork& work, Moments moments, int blocks, cudaStream_t stream) {
  const auto launch = [&]<class T>(T) {
    piece_statistics_kernel<T><<<blocks, threads_per_block, 0, stream>>>(work, moments);
  };
  if (element.width == 64) return launch(Float64{});
  if (element.width == 32) return launch(Float32{});
  return element.exponent_bits == 8 ? launch(BFloat16{}) : launch(Float16{});
}

void join_runs(const PieceWork& work, int blocks, cudaStream_t stream) {
  join_runs_kernel<<<blocks, threads_per_block, 0, stream>>>(work);
}

}  // namespace arrcomp::cuda
