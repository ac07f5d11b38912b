#define ARRCOMP_MACHINE avx2
#include "cpu/activations.inc"

namespace arrcomp {
const ActivationMachine avx2_activation_machine = {avx2::activate, avx2::times_steps};
}
