#define ARRCOMP_MACHINE avx512
#include "cpu/activations.inc"

namespace arrcomp {
const ActivationMachine avx512_activation_machine = {avx512::activate, avx512::times_steps};
}
