#include "cuda/bucket_launches.cuh"

namespace arrcomp::cuda {
const BucketLaunchesOfReals smaq_launches = launches_of_codec<Smaq>();
}
