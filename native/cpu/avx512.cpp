#define ARRCOMP_MACHINE avx512
#include "cpu/machine.inc"

namespace arrcomp {
const Machine avx512_machine = avx512::machine_named("avx512", avx512_bucket_machine, avx512_activation_machine);
}
