#define ARRCOMP_MACHINE neon
#include "cpu/buckets.inc"

namespace arrcomp {
const BucketMachine neon_bucket_machine = neon::bucket_machine();
}
