#include "cuda/launches.cuh"

namespace arrcomp::cuda {
const Kernels bits8_kernels = kernels_of<Bits8>();
}
