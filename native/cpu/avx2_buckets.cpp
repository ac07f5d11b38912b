#define ARRCOMP_MACHINE avx2
#include "cpu/buckets.inc"

namespace arrcomp {
const BucketMachine avx2_bucket_machine = avx2::bucket_machine();
}
