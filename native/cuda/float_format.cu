#include "cuda/bucket_launches.cuh"

namespace arrcomp::cuda {
const BucketLaunchesOfTypes float_format_launches = launches_of_codec<FloatFormat>();
}
