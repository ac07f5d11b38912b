#define ARRCOMP_MACHINE plain
#include "cpu/activations.inc"

namespace arrcomp {
const ActivationMachine plain_activation_machine = {plain::activate, plain::times_steps};
}
