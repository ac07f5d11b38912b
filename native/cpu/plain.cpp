#define ARRCOMP_MACHINE plain
#include "cpu/machine.inc"

namespace arrcomp {
const Machine plain_machine = plain::machine_named("plain", plain_bucket_machine, plain_activation_machine);
}
