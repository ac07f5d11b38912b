#define ARRCOMP_MACHINE avx512
#include "cpu/machine.inc"

namespace arrcomp {
const Machine avx512_machine{"avx512", avx512::scratch_bytes, avx512::range_of, avx512::encode, avx512::decode};
}
