// Integers for elements that are kept without loss (FORMAT.md, sections 9.3 and 9.6). Three kinds have the same functions:
//   of(bits, x, failed)    that of an element, which are its bits or its number; in lanes of `failed` no integer gives it back
//   of_number(x)           that of a number which need not be an element
//   element(q)             the element's bits
#pragma once
#include "codecs/multiple_integers.h"
#include "codecs/predicted/predicted_types.h"
#include "stream/prediction.h"

namespace arrcomp::ARRCOMP_ISA {

// Bits in the order of numbers.
template <class T>
struct OrderedIntegers {
  using Word = typename T::Word;
  using Real = typename T::Real;

  ARRCOMP_METHOD static Word of(Word bits, Real, Mask& failed) {
    failed = mask(0);
    return order_floats(bits, T::width);
  }
  ARRCOMP_METHOD static Word of_number(Real x) { return order_floats(T::narrow(x), T::width); }
  ARRCOMP_METHOD static Word element(Word q) { return order_floats(q, T::width); }
};

// Those of integers.
template <class T>
struct OwnIntegers {
  using Word = typename T::Word;
  using Real = typename T::Real;

  ARRCOMP_METHOD static Word of(Word bits, Real, Mask& failed) {
    failed = mask(0);
    return T::number(bits);
  }
  ARRCOMP_METHOD static Word of_number(Real x) { return round_to_integer(x); }
  ARRCOMP_METHOD static Word element(Word q) { return T::bits(q); }
};

// The kind of an array: of floats one or the other.
template <class T, bool are_floats = T::quantizes>
class LosslessIntegers {
 public:
  ARRCOMP_METHOD explicit LosslessIntegers(const Multiples& multiples)
      : are_multiples_(multiples.is_given()), multiples_(are_multiples_ ? multiples : Multiples{1, 1, 0, 0}) {}

  // Calls visit(integers).
  template <class Visit>
  ARRCOMP_METHOD auto visit(Visit visit) const {
    return are_multiples_ ? visit(multiples_) : visit(OrderedIntegers<T>());
  }

  // In lanes of `failed` no integer gives back the element.
  ARRCOMP_METHOD typename T::Word of(typename T::Word bits, typename T::Real x, Mask& failed) const {
    return visit([&](const auto& integers) ARRCOMP_LAMBDA { return integers.of(bits, x, failed); });
  }

  ARRCOMP_METHOD typename T::Word element(typename T::Word q) const {
    return visit([&](const auto& integers) ARRCOMP_LAMBDA { return integers.element(q); });
  }

 private:
  bool are_multiples_;
  MultipleIntegers<T> multiples_;
};

template <class T>
class LosslessIntegers<T, false> : public OwnIntegers<T> {
 public:
  ARRCOMP_METHOD explicit LosslessIntegers(const Multiples&) {}

  template <class Visit>
  ARRCOMP_METHOD auto visit(Visit visit) const {
    return visit(OwnIntegers<T>());
  }
};

}  // namespace arrcomp::ARRCOMP_ISA
