#define ARRCOMP_MACHINE avx512
#include "cpu/buckets.inc"

namespace arrcomp {
const BucketMachine avx512_bucket_machine = avx512::bucket_machine();
}
