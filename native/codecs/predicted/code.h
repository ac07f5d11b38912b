// A code is what a prediction lacks of a value: a number of steps, or without loss a distance between integers (FORMAT.md,
// section 9.3).
#pragma once
#include "codecs/packing.h"
#include "codecs/predicted/integers.h"

namespace arrcomp::ARRCOMP_ISA {

ARRCOMP_INLINE Mask first_lanes(int n) { return mask(low_mask(n)); }

// The elements of a unit of difference_units(outer, inner): a column of the slices of a block.
struct Column {
  uint64_t block, begin, width;

  ARRCOMP_METHOD Column(uint64_t inner, uint64_t unit) {
    const uint64_t columns = ceil_div(inner, column_size), left = inner - unit % columns * column_size;
    block = unit / columns;
    begin = inner - left;
    width = left < column_size ? left : column_size;
  }
};

// Calls visit(first, n) with the rows of elements [first, first + count).
template <class Visit>
ARRCOMP_METHOD void for_each_row(uint64_t first, uint64_t count, Visit visit) {
  for (uint64_t i = first; i < first + count; i += lanes_per_row) {
    const uint64_t left = first + count - i;
    visit(i, left < lanes_per_row ? static_cast<int>(left) : lanes_per_row);
  }
}

// Stores a row where it is read too, before or after that: of a part of a row all other lanes read the last element.
template <class Stored, class Row>
ARRCOMP_METHOD void replace_row(Stored* p, Row row, int n) {
  if (n < lanes_per_row) sync();
  store_row(p, row, n);
  if (n < lanes_per_row) sync();
}
template <class T>
ARRCOMP_METHOD void replace_elements(void* array, uint64_t first, int n, typename T::Word bits) {
  replace_row(const_cast<typename T::storage*>(element_pointer<T>(array, first)), bits, n);
}

// What of an array's elements is not predicted from: NaN, infinities and the fill value; and which of it a mask has.
template <class T>
struct Gaps {
  using Real = typename T::Real;
  using Word = typename T::Word;
  using Scalar = typename Word::scalar;

  Scalar fill, masked;
  bool has_fill, has_mask;

  ARRCOMP_METHOD explicit Gaps(const GroupSettings& settings, const GapMask& mask = {})
      : fill(0), masked(static_cast<Scalar>(mask.fill)), has_fill(settings.has_fill), has_mask(mask.is_given) {
    using Number = typename Real::scalar;
    if constexpr (T::quantizes)
      if (has_fill) fill = or_all(T::narrow(splat<Real>(static_cast<Number>(settings.fill))));
  }

  ARRCOMP_METHOD Mask in(Word bits, Real x) const {
    if constexpr (!T::quantizes) return mask(0);
    return ~le(size(x), splat<Real>(static_cast<typename Real::scalar>(T::largest))) | in_fill(bits);
  }
  ARRCOMP_METHOD Mask in_fill(Word bits) const { return has_fill ? eq(bits, splat<Word>(fill)) : mask(0); }
  ARRCOMP_METHOD Mask in_mask(Word bits) const { return has_mask ? eq(bits, splat<Word>(masked)) : mask(0); }
};

// Finds out what elements codes do not serve.
template <class T>
class UnservedLanes {
 public:
  ARRCOMP_METHOD void add(const Gaps<T>& gaps, typename T::Word bits, Mask failed) {
    if (!any(failed)) return;
    const Mask missing = gaps.in(bits, T::widen(bits));
    const bool has_gaps = any(failed & ~gaps.in_mask(bits)), has_others = any(failed & ~missing);
    const Unserved found = has_others ? Unserved::others : has_gaps ? Unserved::gaps : Unserved::masked;
    if (kind_ < found) kind_ = found;
  }

  ARRCOMP_METHOD Unserved kind() const { return kind_; }

 private:
  Unserved kind_ = Unserved::none;
};

// What errors are compared with: |x - y| as computed is right to a part in 2^24 (2^53), and this leaves room for it.
template <class Number>
ARRCOMP_INLINE Number limit_within(double bound, Number e) {
  round_bound(bound, e);
  return e - e * (sizeof(Number) == 8 ? Number(0x1p-51) : Number(0x1p-22));
}

template <class T>
class CodeBook {
  using Word = typename T::Word;
  using Real = typename T::Real;
  using Number = typename Real::scalar;

 public:
  // `bound` 0: without loss. Steps are smaller than the bound allows by the scale.
  ARRCOMP_METHOD CodeBook(double bound, int scale, const Multiples& multiples = {})
      : is_lossless_(bound == 0), integers_(multiples) {
    if constexpr (T::quantizes) set_steps(bound, scale);
  }

  // The value's bits.
  ARRCOMP_METHOD Word value(Real predicted, Word code) const {
    if constexpr (T::quantizes)
      if (!is_lossless_) return T::narrow(predicted + seed_value(code) * splat<Real>(step_));
    return integers_.visit([&](const auto& integers)
                               ARRCOMP_LAMBDA { return integers.element(integers.of_number(predicted) + code); });
  }

  // Whether an element may become this.
  ARRCOMP_METHOD Mask is_kept(Word bits, Real x, Word value_bits) const {
    if constexpr (T::quantizes)
      if (!is_lossless_) return holds(x, value_bits);
    return eq(bits, value_bits);
  }

  // The code of elements, 0 in gaps, and what they become; `failed` gets the lanes where that is not within the bound,
  // or not the element.
  ARRCOMP_METHOD Word code(Real predicted, Word bits, Real x, const Gaps<T>& gaps, Word& value_bits,
                           Mask& failed) const {
    if constexpr (T::quantizes)
      if (!is_lossless_) return code_within(predicted, bits, x, gaps, value_bits, failed);
    return integers_.visit([&](const auto& integers) ARRCOMP_LAMBDA {
      const Word near = integers.of_number(predicted), own = integers.of(bits, x, failed);
      failed = failed | gaps.in(bits, x);
      value_bits = select(failed, integers.element(near), bits);
      return select(failed, splat<Word>(0), own - near);
    });
  }

 private:
  ARRCOMP_METHOD void set_steps(double bound, int scale) {
    limit_ = limit_within(is_lossless_ ? 1 : bound, Number{});
    step_ = T::steps_per_bound * limit_ * (static_cast<Number>(scale) / full_scale);
    inverse_ = static_cast<Number>(1.0 / static_cast<double>(step_));
  }

  ARRCOMP_METHOD Word code_within(Real predicted, Word bits, Real x, const Gaps<T>& gaps, Word& value_bits,
                                  Mask& failed) const {
    const Real scaled = (x - predicted) * splat<Real>(inverse_);
    Number most;
    largest_integer(most);
    const Mask in_range = le(size(scaled), splat<Real>(most));  // NaN and infinities are not
    Word code = round_to_integer(scaled);
    value_bits = value(predicted, code);
    failed = gaps.in_fill(bits) | ~(in_range & holds(x, value_bits));
    if (any(failed)) correct(predicted, x, in_range & ~gaps.in(bits, x), code, value_bits, failed);
    return code;
  }

  ARRCOMP_METHOD Mask holds(Real x, Word value_bits) const {
    return le(size(x - T::widen(value_bits)), splat<Real>(limit_));
  }

  // Codes are 0 but where they are `of_use`; and where rounding took a value out of the bound, the next one on the other
  // side of x may be within.
  ARRCOMP_METHOD void correct(Real predicted, Real x, Mask of_use, Word& code, Word& value_bits, Mask& failed) const {
    code = select(of_use, code, splat<Word>(0));
    value_bits = value(predicted, code);
    const Word up = splat<Word>(1), down = splat<Word>(~typename Word::scalar{0});
    const Word next = code + select(lt(T::widen(value_bits), x), up, down);
    const Word next_bits = value(predicted, next);
    const Mask better = failed & of_use & holds(x, next_bits);
    code = select(better, next, code);
    value_bits = select(better, next_bits, value_bits);
    failed = failed & ~better;
  }

  bool is_lossless_;
  LosslessIntegers<T> integers_;
  Number limit_ = 0, step_ = 0, inverse_ = 0;  // of a bound
};

}  // namespace arrcomp::ARRCOMP_ISA
