// Launches of what is the same for all bucketed codecs before they encode.
#pragma once
#include <cuda_runtime_api.h>

#include "cuda/bucket_arguments.h"

namespace arrcomp::cuda {

// Looks at the pieces that begin in each chunk.
void look_at_pieces(const Element& element, const PieceWork& work, Moments moments, int blocks, cudaStream_t stream);

// Puts each run of pieces together; only needed where a bucket has several runs.
void join_runs(const PieceWork& work, int blocks, cudaStream_t stream);

}  // namespace arrcomp::cuda
