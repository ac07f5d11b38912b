#include "cuda/statistics.h"
#include "cuda/statistics_kernels.cuh"

namespace arrcomp::cuda {

void compute_statistics(const Element& element, const StatisticsWork& work, Moments moments, int blocks,
                        cudaStream_t stream) {
  visit_real(element, [&](auto real) {
    statistics_kernel<decltype(real)><<<blocks, threads_per_block, 0, stream>>>(work, moments);
  });
}

void join_runs(const StatisticsWork& work, int blocks, cudaStream_t stream) {
  join_runs_kernel<<<blocks, threads_per_block, 0, stream>>>(work);
}

}  // namespace arrcomp::cuda
