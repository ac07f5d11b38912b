#include "cuda/bucket_launches.cuh"

namespace arrcomp::cuda {
const BucketLaunchesOfReals s2fp8_launches = launches_of_codec<S2fp8>();
}
