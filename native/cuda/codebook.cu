#include "cuda/bucket_launches.cuh"

namespace arrcomp::cuda {
const BucketLaunchesOfReals codebook_launches = launches_of_codec<Codebook>();
}
