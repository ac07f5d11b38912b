#include "cuda/launch.cuh"
#include "cuda/statistics.h"
#include "cuda/statistics_kernels.cuh"

namespace arrcomp::cuda {

void compute_statistics(const Element& element, const StatisticsWork& work, Moments moments, const Shape& shape,
                        cudaStream_t stream) {
  visit_real(element, [&](auto real) { launch<statistics_kernel<decltype(real)>>(shape, stream, work, moments); });
}

void join_runs(const StatisticsWork& work, const Shape& shape, cudaStream_t stream) {
  launch<join_runs_kernel>(shape, stream, work);
}

}  // namespace arrcomp::cuda
