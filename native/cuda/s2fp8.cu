#include "cuda/bucket_launches.cuh"

namespace arrcomp::cuda {
const BucketLaunchesOfTypes s2fp8_launches = launches_of_codec<S2fp8>();
}
