#define ARRCOMP_MACHINE avx2
#include "cpu/machine.inc"

namespace arrcomp {
const Machine avx2_machine = avx2::machine_named("avx2", avx2_bucket_machine, avx2_activation_machine);
}
