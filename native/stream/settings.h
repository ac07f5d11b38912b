// What the encoder is asked for, and what follows from it for a chunk. Shared by host and device.
#pragma once
#include <cstring>

#include "inline.h"
#include "stream/element.h"
#include "stream/parameters.h"

namespace arrcomp {

enum class BoundKind : int { lossless = 0, absolute = 1, relative = 2, pointwise = 3 };

// What codecs of groups ask for of their chunks.
struct GroupSettings {
  BoundKind kind;
  double bound;  // as the user gave it
  bool fast;     // packing instead of entropy coding
  bool has_fill;
  double fill;  // stands for no value: elements like it, in their data type, stay as they are

  // What numbers are compared with: not a number where there is no fill value.
  ARRCOMP_SHARED double fill_or_nan() const { return has_fill ? fill : __builtin_nan(""); }

  // Mantissa bits that are rounded off before lossless coding.
  inline int rounded_bits(const Element& element) const;
};

struct LosslessSettings {
  bool fast;

  static constexpr auto parameters() { return std::tuple{flag("fast", &LosslessSettings::fast)}; }

  bool takes(const Element&) const { return true; }
  GroupSettings group_settings() const { return {BoundKind::lossless, 0.0, fast, false, 0.0}; }
};

struct ErrorBoundedSettings {
  BoundKind kind;
  double bound;
  bool fast;
  bool has_fill;
  double fill;

  static constexpr auto parameters() {
    using S = ErrorBoundedSettings;
    return std::tuple{integer("kind", &S::kind, 1, 3), real("bound", &S::bound, 0, max_real), flag("fast", &S::fast),
                      flag("has_fill", &S::has_fill), real("fill", &S::fill, -max_real, max_real)};
  }
  bool is_consistent() const { return bound > 0; }

  bool takes(const Element& element) const { return element.is_quantizable; }
  GroupSettings group_settings() const { return {kind, bound, fast, has_fill, fill}; }
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

inline int GroupSettings::rounded_bits(const Element& element) const {
  return kind == BoundKind::pointwise ? droppable_bits(element, bound) : 0;
}

}  // namespace arrcomp
