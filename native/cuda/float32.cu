#include "cuda/launches.cuh"

namespace arrcomp::cuda {
const Kernels float32_kernels = kernels_of<Float32>();
}
