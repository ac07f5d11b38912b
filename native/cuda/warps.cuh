// Which warp of a launch this is.
#pragma once
#include "cuda/arguments.h"
#include "lanes/lanes.h"

namespace arrcomp::cuda {

static_assert(warps_per_block <= max_warps_per_block);

// Told to be the same in all lanes, which what is loaded by its means then is too: branches that depend on it are known
// to stay together.
ARRCOMP_INLINE uint32_t warp_of_block() { return uniform(threadIdx.x / lanes_per_row); }
ARRCOMP_INLINE uint64_t warp_of_grid() { return uint64_t{blockIdx.x} * (blockDim.x / lanes_per_row) + warp_of_block(); }
ARRCOMP_INLINE uint64_t warps_of_grid() { return uint64_t{gridDim.x} * (blockDim.x / lanes_per_row); }

}  // namespace arrcomp::cuda
