// The codes of most of S2FP8's values, without a polynomial for the logarithm and one for the power: both are taken out
// of short tables, in fixed point, and lanes that come near to where codes change are in doubt. FORMAT.md says nothing of
// it: codes that are not in doubt are those that s2fp8.h finds.
#pragma once
#include "codecs/numeric/philox.h"
#include "codecs/numeric/real_layout.h"

namespace arrcomp::ARRCOMP_ISA {

// Where permutations of registers look tables up.
constexpr bool has_squeeze_cells = short_lookup;

// Polynomials for cells of a mantissa, sixteenths of an octave, or eighths and one more power where a permutation is of
// 8 entries. And what is added to a fixed-point number in a cell of codes: quarters of an octave, in each of which one
// code changes at most, and of the two octaves of subnormal numbers.
struct SqueezeCells {
  static constexpr int cells = rows_side_by_side > 1 ? 16 : 8;
  static constexpr int powers = cells == 16 ? 3 : 4;
  static constexpr int point = 26;              // bits behind the binary point
  static constexpr int code_shift = point - 2;  // codes are quarters of octaves, too
  static constexpr int quarters = 8;

  alignas(64) float terms[powers][lanes_per_row];        // of the powers from 0 on; each cell several times
  alignas(64) uint32_t normal[cells], subnormal[cells];  // two octaves, of normal numbers twice the same
  float power[5];                                        // of 2^(x - 33) for x from 1 to 2
};

consteval double binary_logarithm(double x) {
  const double f = (x - 1) / (x + 1);
  double power = f, sum = 0;
  for (int k = 1; k < 80; k += 2, power *= f * f) sum += power / k;
  return 2 * sum / 0.69314718055994530942;
}

consteval double binary_power(double x) {
  double term = 1, sum = 0;
  for (int k = 1; k < 40; term *= x * 0.69314718055994530942 / k, ++k) sum += term;
  return sum;
}

// The polynomial that is the function at Chebyshev's nodes of a cell.
template <int n>
consteval void fit(double (*function)(double), double begin, double size, double (&terms)[n]) {
  constexpr double of_3[] = {-0.8660254037844386, 0, 0.8660254037844386};
  constexpr double of_4[] = {-0.9238795325112867, -0.3826834323650898, 0.3826834323650898, 0.9238795325112867};
  constexpr double of_5[] = {-0.9510565162951536, -0.5877852522924731, 0, 0.5877852522924731, 0.9510565162951536};
  double nodes[n], differences[n];
  for (int i = 0; i < n; ++i) {
    nodes[i] = begin + size / 2 * (1 + (n == 3 ? of_3[i % 3] : n == 4 ? of_4[i % 4] : of_5[i]));
    differences[i] = function(nodes[i]);
  }
  for (int k = 1; k < n; ++k)
    for (int i = n - 1; i >= k; --i) differences[i] = (differences[i] - differences[i - 1]) / (nodes[i] - nodes[i - k]);
  for (double& term : terms) term = 0;
  for (int i = n - 1; i >= 0; --i) {  // times (x - the node), plus the difference
    for (int k = n - 1; k > 0; --k) terms[k] = terms[k - 1] - nodes[i] * terms[k];
    terms[0] = differences[i] - nodes[i] * terms[0];
  }
}

// Of a cell of codes from `begin` on: what brings its numbers to codes from `first` on, of which the next one begins at
// `border`, if that is in the cell.
consteval uint32_t code_offset(double begin, double border, uint32_t first) {
  constexpr double unit = 1 << SqueezeCells::point, code = 1 << SqueezeCells::code_shift, size = 1 / 4.0;
  const bool is_inside = begin < border && border < begin + size;
  const double wanted = is_inside ? (first + 1) * code - (border - begin) * unit : first * code;
  return static_cast<uint32_t>(static_cast<int64_t>(wanted - begin * unit));
}

consteval SqueezeCells make_squeeze_cells() {
  SqueezeCells made{};
  constexpr double size = 1.0 / SqueezeCells::cells;
  for (int i = 0; i < lanes_per_row; ++i) {
    double terms[SqueezeCells::powers];
    fit(binary_logarithm, 1 + i % SqueezeCells::cells * size, size, terms);
    for (int k = 0; k < SqueezeCells::powers; ++k) made.terms[k][i] = static_cast<float>(terms[k]);
  }
  double power[5];
  fit(binary_power, 1, 1, power);
  for (int k = 0; k < 5; ++k) made.power[k] = static_cast<float>(power[k] * 0x1p-33);
  // Codes change in the middle between two numbers: 9/8, 11/8... of a power of two, or 3/2, 5/2... of the least number.
  for (int i = 0; i < SqueezeCells::cells; ++i) {
    const double begin = i % 4 / 4.0, subnormal_begin = i % SqueezeCells::quarters / 4.0;
    uint32_t below = 0, subnormal_below = 1;
    while (below < 4 && binary_logarithm((9 + 2 * below) / 8.0) <= begin) ++below;
    while (subnormal_below < 4 && binary_logarithm(subnormal_below + 0.5) <= subnormal_begin) ++subnormal_below;
    const double next = below < 4 ? binary_logarithm((9 + 2 * below) / 8.0) : 2;
    const double next_subnormal = subnormal_below < 4 ? binary_logarithm(subnormal_below + 0.5) : 4;
    made.normal[i] = code_offset(16 + begin, 16 + next, below + 60);  // of the octave from 1 on
    made.subnormal[i] = code_offset(subnormal_begin, next_subnormal, subnormal_below);
  }
  return made;
}

inline constexpr SqueezeCells squeeze_cells = make_squeeze_cells();

struct SqueezedCodes {
  U32 magnitudes;
  Mask doubtful;
};

// Codes of 2^(u - 16), u = 31 + alpha (log2 x - whole - part), of normal numbers x and alpha up to `max_alpha`. The errors
// of this u and of that of s2fp8.h, with its power's, are below alpha (5.5e-6 + 1.8e-7 |whole|) + 1.3e-5 together: the cells'
// polynomials are off by 3.7e-6 at most, logarithms there by 8e-7 and the power by 4.4e-6, and the rest are roundings.
//
// All of it is for one bucket, and in memory, constants too: what compilers know they put together in registers again and
// again, which takes longer than to load it.
class SqueezedCells {
 public:
  static constexpr float max_alpha = 64;

  // For the bucket of this number, and for codes that are the nearest ones or not.
  ARRCOMP_METHOD void fill(int bucket, float alpha, float whole, float part, bool is_random) {
    if (bucket == bucket_) return;
    bucket_ = bucket;
    const float unit = static_cast<float>(1u << (is_random ? random_point : Cells::point));
    const float doubt = alpha * (0x1.9p-18f + (whole < 0 ? -whole : whole) * 0x1p-22f) + 0x1.1p-16f;
    const double largest = static_cast<double>(whole) + static_cast<double>(part);
    const F32 added = splat<F32>(static_cast<float>(31 + doubt - alpha * largest) * unit);
    of_exponents_ = alpha * unit;
    least_ = 0 - alpha * unit;
    least_doubt_ = 2 * doubt * unit;
    border_doubt_ = static_cast<uint32_t>(least_doubt_) + 2;
    behind_ = (1u << Cells::code_shift) - 1;
    lowest_ = 1u << (Cells::code_shift - 1);
    normal_ = 2u << Cells::point;
    nothing_ = 1u << (Cells::code_shift - 1);
    if (is_random) fill_random(doubt);
    const F32 factor = splat<F32>(of_exponents_);
    store(terms_[0], as_bits(near_sum(load(squeeze_cells.terms[0]), factor, added)));
    ARRCOMP_UNROLL for (int k = 1; k < Cells::powers; ++k)
        store(terms_[k], as_bits(load(squeeze_cells.terms[k]) * factor));
  }

  // How near rows are to where codes change.
  struct Margins {
    U32 behind, above_least;
  };
  ARRCOMP_METHOD static Margins widest(Nearest) { return {splat<U32>(~0u), splat<U32>(~0u)}; }
  ARRCOMP_METHOD bool is_in_doubt(const Margins& margins) const {
    const Mask near_border = lt(margins.behind, splat<U32>(border_doubt_));
    return any(near_border | lt(margins.above_least, as_bits(splat<F32>(least_doubt_))));
  }

  // The same where codes depend on random words.
  struct RandomMargins {
    U32 behind;
  };
  ARRCOMP_METHOD static RandomMargins widest(U32) { return {splat<U32>(~0u)}; }
  ARRCOMP_METHOD bool is_in_doubt(const RandomMargins& margins) const {
    return any(lt(margins.behind, splat<U32>(random_doubt_)));
  }

  // In the highest byte codes, with signs: anything where the margins become those of a row in doubt. Several rows go
  // step by step together: what waits for an instruction's result would otherwise fill a processor's queues.
  template <int n>
  ARRCOMP_METHOD void find(const F32 (&x)[n], const Nearest (&)[n], U32 (&codes)[n], Margins& margins) const {
    F32 u[n];
    find_exponents(x, u);
    find_magnitudes(u, codes, margins);
    ARRCOMP_UNROLL for (int j = 0; j < n; ++j) codes[j] = (as_bits(x[j]) & splat<U32>(Layout::sign)) | codes[j];
  }

  // The same with random words, by which codes are the next ones.
  template <int n>
  ARRCOMP_METHOD void find(const F32 (&x)[n], const U32 (&random)[n], U32 (&codes)[n], RandomMargins& margins) const {
    F32 u[n];
    U32 exponent[n];
    find_exponents(x, u);
    find_powers(u, exponent);
    ARRCOMP_UNROLL for (int j = 0; j < n; ++j) {
      const U32 normal = as_bits(u[j]) + exponent[j];
      // Numbers below the least normal one are evenly spaced, and those above are more as they are.
      const U32 subnormal = as_bits(as_float(normal) + splat<F32>(min_normal_)) - splat<U32>(Layout::min_normal);
      const U32 sum = max(normal, subnormal) + (random[j] >> (32 - dropped));
      margins.behind = min(margins.behind, sum & splat<U32>(fraction_));
      codes[j] = merged<Layout::sign>(as_bits(x[j]), sum << (24 - dropped));
    }
  }

 private:
  using Cells = SqueezeCells;
  using Layout = RealLayout<F32>;
  static constexpr int random_point = Layout::mantissa_bits;
  static constexpr int dropped = Layout::mantissa_bits - 2;  // bits of a mantissa that are no part of a code

  // Of powers multiplied by 2^-16, by which the bits of e5m2's numbers are in their places. What is added to them: 44 units,
  // by which the polynomial is off, and 47, by which what is below 0 is. And how far they are too large at most.
  ARRCOMP_METHOD void fill_random(float doubt) {
    constexpr int added = 96;
    for (int k = 0; k < 5; ++k) power_[k] = squeeze_cells.power[k] + (k == 0 ? added * 0x1p-23f * 0x1p-32f : 0);
    random_doubt_ = static_cast<uint32_t>(doubt * (2 * 0x1.63p0f * 0x1p23f)) + 2 * added + 8;
    lowest_random_ = -24.f * (1u << random_point);
    min_normal_ = 0x1p-30f;
    fraction_ = (1u << dropped) - 1;
  }

  // In place of u a power of its fraction, and its integer as an exponent.
  template <int n>
  ARRCOMP_METHOD void find_powers(F32 (&u)[n], U32 (&exponent)[n]) const {
    F32 f[n];
    ARRCOMP_UNROLL for (int j = 0; j < n; ++j) {
      const U32 fixed = to_int(max(splat<F32>(lowest_random_), u[j]));
      f[j] = as_float(masked_or<Layout::mantissa, Layout::one>(fixed));
      exponent[j] = fixed & splat<U32>(~Layout::mantissa);
      u[j] = splat<F32>(power_[4]);
    }
    ARRCOMP_UNROLL for (int k = 3; k >= 0; --k) {
      ARRCOMP_UNROLL for (int j = 0; j < n; ++j) u[j] = near_sum(f[j], u[j], splat<F32>(power_[k]));
    }
  }

  template <int n>
  ARRCOMP_METHOD void find_exponents(const F32 (&x)[n], F32 (&u)[n]) const {
    U32 cell[n];
    F32 f[n];
    ARRCOMP_UNROLL for (int j = 0; j < n; ++j) {
      cell[j] = as_bits(x[j]) >> (Cells::cells == 16 ? 19 : 20);
      f[j] = as_float(masked_or<Layout::mantissa, Layout::one>(as_bits(x[j])));
    }
    ARRCOMP_UNROLL for (int j = 0; j < n; ++j) u[j] = entry(terms_[Cells::powers - 1], cell[j]);
    ARRCOMP_UNROLL for (int k = Cells::powers - 2; k >= 0; --k) {
      ARRCOMP_UNROLL for (int j = 0; j < n; ++j) u[j] = near_sum(f[j], u[j], entry(terms_[k], cell[j]));
    }
    ARRCOMP_UNROLL for (int j = 0; j < n; ++j) u[j] = near_sum(exponents(x[j]), splat<F32>(of_exponents_), u[j]);
  }

  // Of a code: how far behind the border below it u is, and how far above that of 0. Numbers below 0 are, as words, above
  // all others. What becomes 0 has the middle of code 0.
  template <int n>
  ARRCOMP_METHOD void find_magnitudes(const F32 (&u)[n], U32 (&codes)[n], Margins& margins) const {
    U32 fixed[n], offset[n];
    ARRCOMP_UNROLL for (int j = 0; j < n; ++j) fixed[j] = to_int(max(splat<F32>(lowest_), u[j]));
    ARRCOMP_UNROLL for (int j = 0; j < n; ++j) {
      const U32 quarter = fixed[j] >> Cells::code_shift;
      const Mask is_subnormal = lt(u[j], splat<F32>(normal_));
      offset[j] = select(is_subnormal, lookup<Cells::cells>(squeeze_cells.subnormal, quarter),
                         lookup<Cells::cells>(squeeze_cells.normal, quarter));
    }
    ARRCOMP_UNROLL for (int j = 0; j < n; ++j) {
      const F32 above = u[j] - splat<F32>(least_);
      codes[j] = select(le(splat<F32>(0), above), fixed[j] + offset[j], splat<U32>(nothing_));
      margins.behind = min(margins.behind, codes[j] & splat<U32>(behind_));
      margins.above_least = min(margins.above_least, as_bits(above));
    }
  }

  ARRCOMP_METHOD static F32 entry(const uint32_t* table, U32 cell) {
    return as_float(lookup<Cells::cells>(table, cell));
  }

  // u and all that is compared with it are raised by the doubt.
  alignas(64) uint32_t terms_[Cells::powers][lanes_per_row];
  float of_exponents_;
  float least_, least_doubt_;  // what lies below becomes 0
  float lowest_, normal_;      // the middle of the first quarter, in place of all below; the first normal number
  uint32_t border_doubt_, behind_, nothing_;
  float power_[5], lowest_random_, min_normal_;
  uint32_t random_doubt_, fraction_;
  int bucket_ = -1;
};

}  // namespace arrcomp::ARRCOMP_ISA
