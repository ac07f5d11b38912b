#include "cuda/launches.cuh"

namespace arrcomp::cuda {
const Kernels float64_kernels = kernels_of<Float64>();
}
