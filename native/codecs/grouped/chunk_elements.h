// From the words of a chunk back to its elements (FORMAT.md, section 3.4): a type for each mode, so that a loop over
// rows asks for none.
#pragma once
#include "codecs/grouped/quantize.h"
#include "codecs/transform.h"

namespace arrcomp::ARRCOMP_ISA {

// The elements of rows that come in order. `carry` is the value before the next row, or the base.
template <class T, Transform transform, bool difference>
class ChunkElements {
  using Word = typename T::Word;

 public:
  static constexpr bool zero_where_masked = false;  // else the word there is 0

  ARRCOMP_METHOD ChunkElements(const Element& element, const Dequantizer<T>& dequantizer, const ChunkHead& header,
                               Word carry)
      : dequantizer_(dequantizer),
        plain_(header.plain),
        ordered_(element.is_float() && header.transform == Transform::integer),
        order_(ordered_, T::width),
        step_(splat<Word>(static_cast<typename Word::scalar>(header.step))),
        carry_(carry) {}

  ARRCOMP_METHOD Word row(Word u) { return element(value(unfold(u, plain_))); }

  // Each row of words in turn becomes elements.
  template <int n>
  ARRCOMP_METHOD void rows(Word (&words)[n]) {
    if constexpr (difference) {
      ARRCOMP_UNROLL for (Word& u : words) u = unfold(u, plain_);
      prefix_sums(words, carry_, step_);
      ARRCOMP_UNROLL for (Word& u : words) u = element_of_many(u);
    } else {
      ARRCOMP_UNROLL for (Word& u : words) u = row(u);
    }
  }

  ARRCOMP_METHOD Word carry() const { return carry_; }

 private:
  ARRCOMP_METHOD Word value(Word d) {
    if constexpr (!difference) return d + carry_;
    const Word q = prefix_sum(d + step_) + carry_;
    carry_ = broadcast_last(q);
    return q;
  }

  ARRCOMP_METHOD Word element(Word q) const {
    if constexpr (transform == Transform::quantized) return dequantizer_.element(q);
    return difference && ordered_ ? order_floats(q, T::width) : q;
  }

  // The same where it pays to have made ready what is alike for all.
  ARRCOMP_METHOD Word element_of_many(Word q) const {
    if constexpr (transform == Transform::quantized) return element(q);
    return order_.order(q);
  }

  Dequantizer<T> dequantizer_;
  bool plain_, ordered_;
  FloatOrder<Word> order_;
  Word step_;  // from each value to the next, but for its difference
  Word carry_;
};

template <class T>
class ChunkElements<T, Transform::exponent, false> {
  using Word = typename T::Word;

 public:
  static constexpr bool zero_where_masked = true;

  ARRCOMP_METHOD ChunkElements(const Element& element, const Dequantizer<T>&, const ChunkHead& header, Word carry)
      : fields_(element, header), carry_(carry) {}

  ARRCOMP_METHOD Word row(Word u) const { return fields_.join(u); }
  template <int n>
  ARRCOMP_METHOD void rows(Word (&words)[n]) const {
    ARRCOMP_UNROLL for (Word& u : words) u = row(u);
  }
  ARRCOMP_METHOD Word carry() const { return carry_; }

 private:
  ExponentFields<Word> fields_;
  Word carry_;
};

// Calls visit(elements) with those of the header's mode.
template <class T, class Visitor>
ARRCOMP_METHOD void visit_elements(const Element& element, const Dequantizer<T>& dequantizer, const ChunkHead& header,
                                   typename T::Word carry, Visitor visit) {
  if (header.transform == Transform::exponent)
    return visit(ChunkElements<T, Transform::exponent, false>(element, dequantizer, header, carry));
  if constexpr (T::quantizes) {
    if (header.transform == Transform::quantized) {
      if (header.difference)
        return visit(ChunkElements<T, Transform::quantized, true>(element, dequantizer, header, carry));
      return visit(ChunkElements<T, Transform::quantized, false>(element, dequantizer, header, carry));
    }
  }
  if (header.difference) return visit(ChunkElements<T, Transform::integer, true>(element, dequantizer, header, carry));
  visit(ChunkElements<T, Transform::integer, false>(element, dequantizer, header, carry));
}

}  // namespace arrcomp::ARRCOMP_ISA
