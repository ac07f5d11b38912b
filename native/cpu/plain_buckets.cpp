#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-pre")  // which GCC 12 fails in, on the loops of float64 codebooks
#endif
#define ARRCOMP_MACHINE plain
#include "cpu/buckets.inc"

namespace arrcomp {
const BucketMachine plain_bucket_machine = plain::bucket_machine();
}
