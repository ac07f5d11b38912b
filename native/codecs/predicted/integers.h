// Integers for elements that are kept without loss (FORMAT.md, sections 9.3 and 9.6). Two kinds have the same functions:
//   of(bits, x)         that of an element, which are its bits or its number
//   of_number(x)        that of a number which need not be an element
//   element(q)          the element's bits
//   are_not(bits, q)    lanes whose integer does not give back these bits
#pragma once
#include "codecs/grouped/quantize.h"
#include "codecs/transform.h"
#include "stream/prediction.h"

namespace arrcomp::ARRCOMP_ISA {

// Bits in the order of numbers.
template <class T>
struct OrderedIntegers {
  using Word = typename T::Word;
  using Real = typename T::Real;

  ARRCOMP_METHOD static Word of(Word bits, Real) { return order_floats(bits, T::width); }
  ARRCOMP_METHOD static Word of_number(Real x) { return order_floats(T::narrow(x), T::width); }
  ARRCOMP_METHOD static Word element(Word q) { return order_floats(q, T::width); }
  ARRCOMP_METHOD static Mask are_not(Word, Word) { return mask(0); }
};

// How often elements that are multiples have multiplier / divisor.
template <class T>
class MultipleIntegers {
  using Word = typename T::Word;
  using Real = typename T::Real;
  using Number = typename Real::scalar;

 public:
  ARRCOMP_METHOD explicit MultipleIntegers(const Multiples& multiples)
      : multiplier_(static_cast<Number>(multiples.multiplier)),
        divisor_(static_cast<Number>(multiples.divisor)),
        inverse_(divisor_ / multiplier_) {}

  ARRCOMP_METHOD Word of(Word, Real x) const { return of_number(x); }
  ARRCOMP_METHOD Word of_number(Real x) const {
    const Real scaled = x * splat<Real>(inverse_);
    Number most;
    largest_integer(most);
    return round_to_integer(select(le(size(scaled), splat<Real>(most)), scaled, splat<Real>(0)));
  }
  ARRCOMP_METHOD Word element(Word q) const {
    return T::narrow(seed_value(q) * splat<Real>(multiplier_) / splat<Real>(divisor_));
  }
  ARRCOMP_METHOD Mask are_not(Word bits, Word q) const { return ne(element(q), bits); }

 private:
  Number multiplier_, divisor_, inverse_;
};

// One kind or the other.
template <class T>
class LosslessIntegers {
 public:
  ARRCOMP_METHOD explicit LosslessIntegers(const Multiples& multiples)
      : are_multiples_(multiples.is_given()), multiples_(are_multiples_ ? multiples : Multiples{1, 1}) {}

  // Calls visit(integers).
  template <class Visit>
  ARRCOMP_METHOD auto visit(Visit visit) const {
    return are_multiples_ ? visit(multiples_) : visit(OrderedIntegers<T>());
  }

  // In lanes of `failed` no integer gives back the element.
  ARRCOMP_METHOD typename T::Word of(typename T::Word bits, typename T::Real x, Mask& failed) const {
    return visit([&](const auto& integers) ARRCOMP_LAMBDA {
      const auto q = integers.of(bits, x);
      failed = integers.are_not(bits, q);
      return q;
    });
  }

  ARRCOMP_METHOD typename T::Word element(typename T::Word q) const {
    return visit([&](const auto& integers) ARRCOMP_LAMBDA { return integers.element(q); });
  }

 private:
  bool are_multiples_;
  MultipleIntegers<T> multiples_;
};

}  // namespace arrcomp::ARRCOMP_ISA
