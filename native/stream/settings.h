// What the encoder is asked for, and what follows from it for a chunk. Shared by host and device.
#pragma once
#include <cstring>

#include "inline.h"
#include "stream/element.h"
#include "stream/parameters.h"

namespace arrcomp {

enum class BoundKind : int { lossless = 0, absolute = 1, relative = 2, pointwise = 3 };

struct Settings {
  BoundKind kind;
  double bound;  // as the user gave it
  bool fast;     // packing instead of entropy coding

  static bool read_lossless(std::span<const double> p, Settings& s) {
    if (p.size() != 1 || !is_flag(p[0])) return false;
    s = {BoundKind::lossless, 0.0, p[0] != 0};
    return true;
  }

  static bool read_bounded(std::span<const double> p, Settings& s) {
    if (p.size() != 3 || !is_integer(p[0], 1, 3) || !(p[1] > 0 && p[1] <= 1.7976931348623157e308) || !is_flag(p[2]))
      return false;
    s = {static_cast<BoundKind>(static_cast<int>(p[0])), p[1], p[2] != 0};
    return true;
  }

  bool takes(const Element& element) const { return kind == BoundKind::lossless || element.is_quantizable; }

  // Mantissa bits that are rounded off before lossless coding.
  inline int rounded_bits(const Element& element) const;
};

// The largest float at or below a positive finite x (or the largest finite one).
ARRCOMP_SHARED float round_down(double x) {
  if (x >= 3.402823466385288598e38) return 3.402823466385288598e38f;
  float f = static_cast<float>(x);
  if (static_cast<double>(f) <= x) return f;
  uint32_t bits;
  memcpy(&bits, &f, 4);
  bits -= 1;
  memcpy(&f, &bits, 4);
  return f;
}

// Bounds whose step is not a normal number of the arithmetic type quantize nothing: such arrays are kept without loss.
ARRCOMP_SHARED bool is_quantizable(const Element& element, double bound) {
  return element.is_quantizable && bound >= (element.width == 64 ? 0x1p-1022 : 0x1p-126);
}

// rel * (largest - smallest finite value), at most the largest finite number. A range above that is taken from halves,
// which are exact. The two roundings, of up to 2^-53 each, are taken off again: the bound never exceeds the exact
// product.
ARRCOMP_SHARED double relative_bound(double rel, double smallest, double largest) {
  if (!(largest > smallest)) return 0.0;
  const double range = largest - smallest;
  const double bound = range <= 0x1.fffffffffffffp1023 ? rel * range : 2 * (rel * (0.5 * largest - 0.5 * smallest));
  const double below = bound * (1 - 0x1p-51);
  return below <= 0x1.fffffffffffffp1023 ? below : 0x1.fffffffffffffp1023;
}

// Mantissa bits that can be rounded off so that |x - y| <= pointwise * |x|: with b bits kept, rounding to nearest errs
// by at most 2^-(b + 1) of the value's power of two, which is at most |x|.
ARRCOMP_SHARED int droppable_bits(const Element& element, double pointwise) {
  int kept = 0;
  for (double error = 0.5; kept < element.mantissa_bits && error > pointwise; error *= 0.5) ++kept;
  return element.mantissa_bits - kept;
}

inline int Settings::rounded_bits(const Element& element) const {
  return kind == BoundKind::pointwise ? droppable_bits(element, bound) : 0;
}

}  // namespace arrcomp
