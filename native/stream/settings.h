// What the encoder is asked for, and what follows from it for a chunk. Shared by host and device.
#pragma once
#include <cstring>
#include <span>

#include "inline.h"
#include "stream/element.h"
#include "stream/parameters.h"

namespace arrcomp {

enum class Predictor : int { none = 0, automatic = 1, interpolation = 2, lorenzo = 3, columns = 4, reference = 5 };

enum class BoundKind : int { lossless = 0, absolute = 1, relative = 2, pointwise = 3 };

constexpr int max_axes = 5;

// Sets of axes are bits: of the second axis, and of those behind it.
constexpr int first_axis_of_sets = 1;
constexpr int axis_sets = 1 << (max_axes - 1);
ARRCOMP_SHARED constexpr int set_of_axis(int axis) {
  return axis >= first_axis_of_sets ? 1 << (axis - first_axis_of_sets) : 0;
}
ARRCOMP_SHARED constexpr bool is_in(int set, int axis) { return (set & set_of_axis(axis)) != 0; }

// The sizes of an array's axes, the last one contiguous; those that it lacks come first and are 1.
struct Axes {
  uint64_t sizes[max_axes];

  ARRCOMP_SHARED uint64_t count() const { return outer(max_axes); }

  // Whether the sizes are those of `count` elements, without a product that wraps.
  ARRCOMP_SHARED bool have(uint64_t count) const {
    uint64_t product = 1;
    if (count == 0) return false;
    for (uint64_t size : sizes) {
      if (size == 0 || product > count / size) return false;
      product *= size;
    }
    return product == count;
  }

  // The first axis that has several places, else the last. What an array has at one of these is a row.
  ARRCOMP_SHARED int axis_of_rows() const {
    int axis = 0;
    while (axis < max_axes - 1 && sizes[axis] == 1) ++axis;
    return axis;
  }

  // Elements of the axes before `axis`, and of those behind.
  ARRCOMP_SHARED uint64_t outer(int axis) const {
    uint64_t product = 1;
    for (int a = 0; a < axis; ++a) product *= sizes[a];
    return product;
  }
  ARRCOMP_SHARED uint64_t inner(int axis) const {
    uint64_t product = 1;
    for (int a = axis + 1; a < max_axes; ++a) product *= sizes[a];
    return product;
  }
};

// The axes of a shape: its sizes but those of 1, the first ones multiplied where there are more than fit. All are 0 where
// they are not those of `count` elements.
inline Axes axes_of(std::span<const int64_t> shape, uint64_t count) {
  Axes axes{{1, 1, 1, 1, 1}};
  int axis = max_axes;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] < 1) return {};
    if (shape[d] == 1) continue;
    if (axis > 0) --axis;
    axes.sizes[axis] *= static_cast<uint64_t>(shape[d]);
  }
  return axes.have(count) ? axes : Axes{};
}

// What codecs of groups ask for of their chunks.
struct GroupSettings {
  BoundKind kind;
  double bound;  // as the user gave it
  bool fast;     // packing instead of entropy coding
  bool has_fill;
  double fill;  // stands for no value: elements like it, in their data type, stay as they are
  Predictor predictor;
  bool is_part = false;  // of an array, which shows how that is best predicted

  // Whether elements are predicted from others of their array.
  ARRCOMP_SHARED bool predicts() const { return predictor != Predictor::none && predictor != Predictor::reference; }

  // Whether elements may stand by columns.
  ARRCOMP_SHARED bool may_be_by_columns() const {
    return predictor == Predictor::automatic || predictor == Predictor::columns;
  }

  // Whether there is one bound for all elements.
  ARRCOMP_SHARED bool has_one_bound() const { return kind == BoundKind::absolute || kind == BoundKind::relative; }

  // The predictor, or what it may be: where each element has a bound of its own, none is predicted.
  ARRCOMP_SHARED Predictor possible_predictor() const {
    return kind == BoundKind::pointwise && predictor == Predictor::automatic ? Predictor::columns : predictor;
  }

  // Whether a predictor was named: it is taken though no prediction may be shorter.
  ARRCOMP_SHARED bool must_predict() const { return predictor > Predictor::automatic; }

  // What numbers are compared with: not a number where there is no fill value.
  ARRCOMP_SHARED double fill_or_nan() const { return has_fill ? fill : __builtin_nan(""); }

  // Mantissa bits that are rounded off before lossless coding.
  inline int rounded_bits(const Element& element) const;
};

struct LosslessSettings {
  bool fast;
  Predictor predictor;

  static constexpr auto parameters() {
    return std::tuple{flag("fast", &LosslessSettings::fast), integer("predictor", &LosslessSettings::predictor, 0, 5)};
  }

  bool takes(const Element&) const { return true; }
  GroupSettings group_settings() const { return {BoundKind::lossless, 0.0, fast, false, 0.0, predictor}; }
};

struct ErrorBoundedSettings {
  BoundKind kind;
  double bound;
  bool fast;
  bool has_fill;
  double fill;
  Predictor predictor;

  static constexpr auto parameters() {
    using S = ErrorBoundedSettings;
    return std::tuple{integer("kind", &S::kind, 1, 3),
                      real("bound", &S::bound, 0, max_real),
                      flag("fast", &S::fast),
                      flag("has_fill", &S::has_fill),
                      real("fill", &S::fill, -max_real, max_real),
                      integer("predictor", &S::predictor, 0, 5)};
  }
  bool is_consistent() const { return bound > 0; }

  bool takes(const Element& element) const { return element.is_quantizable; }
  GroupSettings group_settings() const { return {kind, bound, fast, has_fill, fill, predictor}; }
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

// Of a bound as it was asked for: that of quantized elements, 0 where there are none. Decimals often lie half a step from two of
// its multiples, where rounding alone would make half of them exceptions: a bound has room for that, unless it is a number of
// few bits, with which all such sums are exact. (16 bits have narrower steps.)
ARRCOMP_SHARED double quantized_bound(const Element& element, double asked) {
  constexpr uint64_t other_bits = (uint64_t{1} << 42) - 1;  // than the 11 highest ones of a number
  uint64_t bits;
  memcpy(&bits, &asked, sizeof bits);
  const bool is_exact = (bits & other_bits) == 0 || element.width == 16;
  const double bound = is_exact ? asked : asked - asked * 0x1p-20;
  return is_quantizable(element, bound) ? bound : 0;
}

// Whether predictions are offered for such elements: floats with error bounds, and integers.
ARRCOMP_SHARED bool is_predictable(const Element& element) { return element.is_quantizable || !element.is_float(); }

// Bounds that leave room for the smaller ones of coarse grids.
ARRCOMP_SHARED bool is_predictable(const Element& element, double bound) {
  return element.is_quantizable && bound >= (element.width == 64 ? 0x1p-1000 : 0x1p-110);
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
