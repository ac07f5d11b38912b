// The codes of most of S2FP8's values from quick logarithms and powers, which are near to what s2fp8.h finds: lanes that
// come near to where codes change are in doubt. FORMAT.md says nothing of it: codes that are not in doubt are the same.
#pragma once
#include "codecs/bucketed/s2fp8_cells.h"

namespace arrcomp::ARRCOMP_ISA {

// As SqueezedCells. t = alpha (log2 (2^(2 - whole) x) - 2 - part) + 15, of which what matters is above -17 - alpha: this t
// is off by 8e-6 + 1e-6 alpha at most, and that of s2fp8.h, with its power's, by 1.5e-5 + 1e-6 alpha. Below the smallest
// of these products codes are 0, so it does not matter whether subnormal ones are told from 0.
struct SqueezedPowers {
  static constexpr float max_alpha = SqueezedCells::max_alpha;

  F32 doubt;
  F32 factor;        // 2^(2 - whole)
  F32 alpha, added;  // t = alpha log2 (factor x) + added
  F32 below;         // the doubt above which codes are not 0
  U32 moved, doubt_units;

  ARRCOMP_METHOD SqueezedPowers(F32 squeeze, F32 whole, F32 part)
      : doubt(squeeze * splat<F32>(0x1.8p-18f) + splat<F32>(0x1p-15f)),
        factor(as_float((low_bits(splat<F32>(2) - whole) << 23) + splat<U32>(RealLayout<F32>::one))),
        alpha(squeeze),
        added(near_sum(part + splat<F32>(2), splat<F32>(0) - squeeze, splat<F32>(15))),
        below(splat<F32>(-16) - squeeze - doubt),
        // A mantissa near 2 changes by 2 ln 2 of what its logarithm changes by.
        moved(to_int(doubt * splat<F32>(0x1.64p23f)) + splat<U32>(1 + (1 << (code_shift - 1)))),
        doubt_units((moved << 1) - splat<U32>(1 << code_shift)) {}

  // The power's bits, with the bias of e5m2's exponents: it becomes subnormal where codes do.
  ARRCOMP_METHOD SqueezedCodes codes_of(F32 x) const {
    const F32 t = near_sum(near_log2(x * factor), alpha, added), above = t - below;
    const F32 power = near_power(max(splat<F32>(-16), t)) * splat<F32>(0x1p-112f);
    const U32 fixed = as_bits(power) + moved;
    // As words, numbers below 0 are above all others.
    const Mask doubtful =
        lt(fixed & splat<U32>((1u << code_shift) - 1), doubt_units) | lt(as_bits(above), as_bits(doubt + doubt));
    return {select(le(splat<F32>(0), above), fixed >> code_shift, splat<U32>(0)), doubtful};
  }

 private:
  static constexpr int code_shift = 21;  // two bits of the mantissa stay

  // Nine bits of an integer, quicker than to_int finds them.
  ARRCOMP_METHOD static U32 low_bits(F32 integer) { return as_bits(integer + splat<F32>(0x1.8p23f)); }
};

}  // namespace arrcomp::ARRCOMP_ISA
