// Launches of what is the same for all bucketed codecs before they encode.
#pragma once
#include <cuda_runtime_api.h>

#include "cuda/bucket_arguments.h"

namespace arrcomp::cuda {

// Looks at the segments that begin in each chunk.
void compute_statistics(const Element& element, const StatisticsWork& work, Moments moments, int blocks,
                        cudaStream_t stream);

// Puts each run of segments together; only needed where a bucket has several runs.
void join_runs(const StatisticsWork& work, int blocks, cudaStream_t stream);

}  // namespace arrcomp::cuda
