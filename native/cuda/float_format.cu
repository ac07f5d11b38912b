#include "cuda/bucket_launches.cuh"

namespace arrcomp::cuda {
const BucketLaunchesOfReals float_format_launches = launches_of_codec<FloatFormat>();
}
