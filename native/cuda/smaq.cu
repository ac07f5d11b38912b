#include "cuda/bucket_launches.cuh"

namespace arrcomp::cuda {
const BucketLaunchesOfTypes smaq_launches = launches_of_codec<Smaq>();
}
