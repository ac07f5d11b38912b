#define ARRCOMP_MACHINE plain
#include "cpu/machine.inc"

namespace arrcomp {
const Machine plain_machine{"plain", plain::scratch_bytes, plain::range_of, plain::encode, plain::decode};
}
