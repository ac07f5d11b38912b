#include "cuda/launches.cuh"

namespace arrcomp::cuda {
const Kernels float16_kernels = kernels_of<Float16>();
}
