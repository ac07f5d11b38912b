#define ARRCOMP_MACHINE neon
#include "cpu/machine.inc"

namespace arrcomp {
const Machine neon_machine = neon::machine_named("neon", neon_bucket_machine, neon_activation_machine);
}
