#include "cuda/launches.cuh"

namespace arrcomp::cuda {
const Kernels bfloat16_kernels = kernels_of<BFloat16>();
}
