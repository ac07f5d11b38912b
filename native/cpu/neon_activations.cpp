#define ARRCOMP_MACHINE neon
#include "cpu/activations.inc"

namespace arrcomp {
const ActivationMachine neon_activation_machine = {neon::activate, neon::times_steps};
}
