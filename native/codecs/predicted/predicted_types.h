// Elements that are predicted: floats, and integers as numbers of the arithmetic type (FORMAT.md, section 9).
#pragma once
#include "codecs/grouped/quantize.h"
#include "codecs/numeric/real_layout.h"
#include "codecs/transform.h"

namespace arrcomp::ARRCOMP_ISA {

// Integers are kept without loss. Of unsigned ones half of their range is taken off, so that 32 bits hold all numbers.
template <class Storage, class RealType, bool is_signed>
struct PredictedInteger : BitsOnly<Storage, typename RealLayout<RealType>::Word> {
  using Real = RealType;
  using Word = typename RealLayout<RealType>::Word;
  using Scalar = typename Word::scalar;
  static constexpr bool quantizes = false;
  static constexpr int width = sizeof(Storage) * 8;
  static constexpr double epsilon = 1, steps_per_bound = 2;                 // of bounds, which there are none of
  static constexpr double largest = sizeof(Scalar) == 8 ? 0x1p50 : 0x1p30;  // which predictions may have
  static constexpr Scalar flipped = is_signed ? 0 : Scalar{1} << (width - 1);

  ARRCOMP_METHOD static Word number(Word bits) { return sign_extend(bits ^ splat<Word>(flipped), width); }
  // What is above the element's bits is anything.
  ARRCOMP_METHOD static Word bits(Word number) { return number ^ splat<Word>(flipped); }

  // What is predicted from. Numbers that are too large for the arithmetic type count as 0.
  ARRCOMP_METHOD static Real widen(Word bits) {
    const Word x = number(bits);
    if constexpr (width < 64) {
      return seed_value(x);
    } else {
      constexpr Scalar most = Scalar{1} << 50;
      return seed_value(select(lt(x + splat<Word>(most), splat<Word>(2 * most + 1)), x, splat<Word>(0)));
    }
  }
};

using Int8 = PredictedInteger<uint8_t, F32, true>;
using UInt8 = PredictedInteger<uint8_t, F32, false>;
using Int16 = PredictedInteger<uint16_t, F32, true>;
using UInt16 = PredictedInteger<uint16_t, F32, false>;
using Int32 = PredictedInteger<uint32_t, F32, true>;
using UInt32 = PredictedInteger<uint32_t, F32, false>;
using Int64 = PredictedInteger<uint64_t, F64, true>;
using UInt64 = PredictedInteger<uint64_t, F64, false>;

// Calls visit(T{}) with the type of elements that may be predicted.
template <class Visitor>
auto visit_predicted(const Element& element, Visitor visit) {
  if (element.is_float()) return visit_float(element, visit);
  switch (element.width) {
    case 8: return element.is_signed ? visit(Int8{}) : visit(UInt8{});
    case 16: return element.is_signed ? visit(Int16{}) : visit(UInt16{});
    case 32: return element.is_signed ? visit(Int32{}) : visit(UInt32{});
    default: return element.is_signed ? visit(Int64{}) : visit(UInt64{});
  }
}

}  // namespace arrcomp::ARRCOMP_ISA
