#include "cuda/bucket_launches.cuh"

namespace arrcomp::cuda {
const BucketLaunchesOfTypes qsgd_launches = launches_of_codec<Qsgd>();
}
