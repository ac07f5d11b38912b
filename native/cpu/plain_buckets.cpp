#define ARRCOMP_MACHINE plain
#include "cpu/buckets.inc"

namespace arrcomp {
const BucketMachine plain_bucket_machine = plain::bucket_machine();
}
