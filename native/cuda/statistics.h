// Launches of what is the same for all bucketed codecs before they encode.
#pragma once
#include "cuda/bucket_arguments.h"
#include "cuda/shape.h"

namespace arrcomp::cuda {

// Looks at the segments that begin in each chunk.
void compute_statistics(const Element& element, const StatisticsWork& work, Moments moments, const Shape& shape,
                        cudaStream_t stream);

// Puts each run of segments together; only needed where a bucket has several runs.
void join_runs(const StatisticsWork& work, const Shape& shape, cudaStream_t stream);

}  // namespace arrcomp::cuda
