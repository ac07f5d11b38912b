// The codes of most of S2FP8's values, without a polynomial for the logarithm and one for the power: both are taken out
// of short tables, in fixed point, and lanes that come near to where codes change are in doubt. FORMAT.md says nothing of
// it: codes that are not in doubt are those that s2fp8.h finds.
#pragma once
#include "codecs/numeric/real_layout.h"

namespace arrcomp::ARRCOMP_ISA {

// Where permutations of registers look tables up.
constexpr bool has_squeeze_cells = rows_side_by_side > 1;

// Bits of the numbers of a cell's polynomial, and what is added to a fixed-point number in a cell. The logarithm's cells
// are sixteenths of an octave's mantissas; those of codes are sixteenths of an octave, and eighths of the two octaves of
// subnormal numbers.
struct SqueezeCells {
  static constexpr int cells = 16;
  static constexpr int point = 17;              // bits behind the binary point
  static constexpr int code_shift = point - 2;  // codes are quarters of octaves
  static constexpr float rounder = 96;          // the sum with it, from 64 on, has that point
  static constexpr uint32_t rounder_bits = 0x42c00000;

  alignas(64) float constant[cells], linear[cells], square[cells];
  alignas(64) uint32_t normal[cells], subnormal[cells];
};

consteval double binary_logarithm(double x) {
  const double f = (x - 1) / (x + 1);
  double power = f, sum = 0;
  for (int k = 1; k < 80; k += 2, power *= f * f) sum += power / k;
  return 2 * sum / 0.69314718055994530942;
}

// What the mantissa f lacks to its logarithm.
consteval double bent(double f) { return binary_logarithm(f) - (f - 1); }

// Of a cell of codes from `begin` on: what brings its numbers to codes from `first` on, of which the next one begins at
// `border`, if that is in the cell.
consteval uint32_t code_offset(double begin, double size, double border, uint32_t first) {
  constexpr double unit = 1 << SqueezeCells::point, code = 1 << SqueezeCells::code_shift;
  const double at = begin * unit + SqueezeCells::rounder_bits;
  const bool is_inside = begin < border && border < begin + size;
  const double wanted =
      is_inside ? (first + 1) * code - (border - begin) * unit : (first + 0.5) * code - size / 2 * unit;
  return static_cast<uint32_t>(static_cast<int64_t>(wanted - at));
}

consteval SqueezeCells make_squeeze_cells() {
  SqueezeCells made{};
  constexpr double size = 1.0 / SqueezeCells::cells, node = 0.8660254037844386 * size / 2;  // Chebyshev's
  for (int i = 0; i < SqueezeCells::cells; ++i) {
    const double middle = 1 + (i + 0.5) * size;
    const double low = bent(middle - node), centre = bent(middle), high = bent(middle + node);
    const double slope = (high - low) / (2 * node), square = (low - 2 * centre + high) / (2 * node * node);
    made.constant[i] = static_cast<float>(centre - slope * middle + square * middle * middle);
    made.linear[i] = static_cast<float>(slope - 2 * square * middle);
    made.square[i] = static_cast<float>(square);
  }
  // Codes change in the middle between two numbers: 9/8, 11/8... of a power of two, or 3/2, 5/2... of the least number.
  for (uint32_t i = 0; i < SqueezeCells::cells; ++i) {
    uint32_t below = 0, subnormal_below = 1;
    while (below < 4 && binary_logarithm((9 + 2 * below) / 8.0) <= i / 16.0) ++below;
    while (subnormal_below < 4 && binary_logarithm(subnormal_below + 0.5) <= i / 8.0) ++subnormal_below;
    const double next = below < 4 ? binary_logarithm((9 + 2 * below) / 8.0) : 2;
    const double next_subnormal = subnormal_below < 4 ? binary_logarithm(subnormal_below + 0.5) : 4;
    made.normal[i] = code_offset(i / 16.0, 1 / 16.0, next, below + 60);  // of the octave from 1 on
    made.subnormal[i] = code_offset(-16 + i / 8.0, 1 / 8.0, next_subnormal - 16, subnormal_below);
  }
  return made;
}

inline constexpr SqueezeCells squeeze_cells = make_squeeze_cells();

struct SqueezedCodes {
  U32 magnitudes;
  Mask doubtful;
};

// Codes of 2^t, t = 15 + alpha (log2 x - whole - part), of normal numbers x and alpha up to `max_alpha`. The errors of
// this t and of that of s2fp8.h, with its power's, are below 5e-6 alpha + 2.5e-5 together; the cells' polynomials take 4e-6
// of it, numbers of `point` bits 4e-6, the power 5e-6, and the rest are roundings of numbers up to 80.
struct SqueezedCells {
  static constexpr float max_alpha = 64;

  F32 alpha;
  F32 of_bits, added;  // t = alpha c(mantissa) + of_bits (bits - base) + added
  U32 base;
  F32 least, doubt;  // what lies below becomes 0
  U32 doubt_units;

  ARRCOMP_METHOD SqueezedCells(F32 squeeze, F32 whole, F32 part)
      : alpha(squeeze),
        of_bits(squeeze * splat<F32>(0x1p-23f)),
        added(splat<F32>(15) - part * squeeze),
        base((to_int(whole) << 23) + splat<U32>(RealLayout<F32>::one)),
        least(splat<F32>(-16) - squeeze),
        doubt(squeeze * splat<F32>(0x1.8p-18f) + splat<F32>(0x1p-15f)),
        doubt_units(to_int(doubt * splat<F32>(1 << SqueezeCells::point)) + splat<U32>(1)) {}

  ARRCOMP_METHOD SqueezedCodes codes_of(F32 x) const {
    using Cells = SqueezeCells;
    using Layout = RealLayout<F32>;
    const U32 bits = as_bits(abs(x)), cell = bits >> 19;
    const F32 f = as_float((bits & splat<U32>(Layout::mantissa)) | splat<U32>(Layout::one));
    const F32 lacking = entry(squeeze_cells.constant, cell) +
                        f * (entry(squeeze_cells.linear, cell) + f * entry(squeeze_cells.square, cell));
    const F32 t = to_float(bits - base) * of_bits + (lacking * alpha + added);
    const F32 from_least = t - least;
    const U32 fixed = as_bits(max(t, splat<F32>(-16)) + splat<F32>(Cells::rounder));
    const Mask is_subnormal = lt(fixed, splat<U32>(Cells::rounder_bits - (14 << Cells::point)));
    const U32 offset = select(is_subnormal, lookup<Cells::cells>(squeeze_cells.subnormal, fixed >> (Cells::point - 3)),
                              lookup<Cells::cells>(squeeze_cells.normal, fixed >> (Cells::point - 4)));
    const U32 moved = fixed + offset;
    const U32 behind = (moved + doubt_units) & splat<U32>((1u << Cells::code_shift) - 1);
    const Mask doubtful = lt(behind, doubt_units + doubt_units) | lt(abs(from_least), doubt);
    return {select(le(splat<F32>(0), from_least), moved >> Cells::code_shift, splat<U32>(0)), doubtful};
  }

 private:
  ARRCOMP_METHOD static F32 entry(const float* table, U32 cell) {
    return as_float(lookup<SqueezeCells::cells>(reinterpret_cast<const uint32_t*>(table), cell));
  }
};

}  // namespace arrcomp::ARRCOMP_ISA
