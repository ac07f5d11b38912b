#include "cuda/bucket_launches.cuh"

namespace arrcomp::cuda {
const BucketLaunchesOfReals qsgd_launches = launches_of_codec<Qsgd>();
}
