// Logarithms of counts, by which a writer estimates bits.
#pragma once
#include "lanes/lanes.h"

namespace arrcomp::ARRCOMP_ISA {

// log2(x) in 1/256, off by 5 at most: between powers of two a parabola. Of 0 anything.
ARRCOMP_INLINE U32 log2_256(U32 x) {
  const U32 exponent = bit_length(x) - splat<U32>(1);
  const U32 part = srl_modulo(x << 8, exponent) - splat<U32>(256);
  return (exponent << 8) + part + (part * (splat<U32>(256) - part) * splat<U32>(88) >> 16);
}

}  // namespace arrcomp::ARRCOMP_ISA
