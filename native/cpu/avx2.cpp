#define ARRCOMP_MACHINE avx2
#include "cpu/machine.inc"

namespace arrcomp {
const Machine avx2_machine{"avx2", avx2::scratch_bytes, avx2::range_of, avx2::encode, avx2::decode};
}
