#include "cuda/bucket_launches.cuh"

namespace arrcomp::cuda {
const BucketLaunchesOfTypes codebook_launches = launches_of_codec<Codebook>();
}
