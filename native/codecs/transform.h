// Between an element's bits and the words that are coded: prediction, zigzag, and the exponent's place on top
// (FORMAT.md, section 3.4). Each function stands beside its inverse.
#pragma once
#include "codecs/chunk.h"
#include "codecs/element_types.h"

namespace arrcomp::ARRCOMP_ISA {

// The low `bits` (1 to 32, or 64) of a number, and of each lane.
template <class Scalar>
ARRCOMP_INLINE constexpr Scalar ones_of(int bits) {
  return static_cast<Scalar>(~Scalar{0}) >> (static_cast<int>(sizeof(Scalar)) * 8 - bits);
}
template <class Word>
ARRCOMP_INLINE Word ones(int bits) {
  return splat<Word>(ones_of<typename Word::scalar>(bits));
}

template <class Word>
ARRCOMP_INLINE Word sign_extend(Word x, int bits) {
  const int unused = static_cast<int>(sizeof(typename Word::scalar)) * 8 - bits;
  return unused == 0 ? x : sar(x << unused, unused);
}

// A signed difference, modulo 2^bits, as an unsigned word of as many bits.
template <class Word>
ARRCOMP_INLINE Word fold(Word difference, bool plain, int bits) {
  if (plain) return difference & ones<Word>(bits);
  const Word d = sign_extend(difference, bits);
  return (d << 1 ^ sar(d, static_cast<int>(sizeof(typename Word::scalar)) * 8 - 1)) & ones<Word>(bits);
}

// The same for words of all bits, without a branch.
template <class Word>
struct Folding {
  using Scalar = typename Word::scalar;

  int twice;
  Word signs;

  ARRCOMP_METHOD explicit Folding(bool plain)
      : twice(plain ? 0 : 1), signs(in_registers(splat<Word>(plain ? 0 : ~Scalar{0}))) {}

  ARRCOMP_METHOD Word fold(Word d) const {
    return d << twice ^ (sar(d, static_cast<int>(sizeof(Scalar)) * 8 - 1) & signs);
  }
};

template <class Word>
ARRCOMP_INLINE Word unfold(Word u, bool plain) {
  return plain ? u : u >> 1 ^ (splat<Word>(0) - (u & splat<Word>(1)));
}

// Float bits as integers in the order of the numbers, and back (the mapping is its own inverse).
template <class Word>
ARRCOMP_INLINE Word order_floats(Word bits, int width) {
  const Word x = sign_extend(bits, width);
  return x ^ (sar(x, static_cast<int>(sizeof(typename Word::scalar)) * 8 - 1) & ones<Word>(width - 1));
}

// The same, or nothing where the bits are not those of floats, without a branch. What is above these bits is kept.
template <class Word>
struct FloatOrder {
  using Scalar = typename Word::scalar;

  int unused;
  Word magnitude;

  ARRCOMP_METHOD FloatOrder(bool are_floats, int width)
      : unused(static_cast<int>(sizeof(Scalar)) * 8 - width),
        magnitude(in_registers(splat<Word>(are_floats ? (Scalar{1} << (width - 1)) - 1 : 0))) {}

  ARRCOMP_METHOD Word order(Word bits) const {
    return bits ^ (sar(bits << unused, static_cast<int>(sizeof(Scalar)) * 8 - 1) & magnitude);
  }
};

// The exponent and the mantissa as one number, counted down from the base with a mantissa of ones, so that nothing below
// the exponent borrows; without the mantissa's `drop` lowest bits. Below it the sign, but where no value has one.
template <class Word>
struct ExponentFields {
  using Scalar = typename Word::scalar;

  int magnitude_bits, drop, sign_bits;
  Scalar highest;

  ARRCOMP_METHOD ExponentFields(const Element& element, const ChunkHead& header)
      : magnitude_bits(element.exponent_bits + element.mantissa_bits),
        drop(header.drop),
        sign_bits(header.plain ? 0 : 1),
        highest((static_cast<Scalar>(header.base + 1) << element.mantissa_bits) - 1) {}

  ARRCOMP_METHOD Word split(Word bits) const {
    // In a register: else a GPU has two instructions.
    const Word distance = (in_registers(splat<Word>(highest)) - bits) & ones<Word>(magnitude_bits);
    const Word sign = bits >> magnitude_bits & splat<Word>(static_cast<Scalar>(sign_bits));
    return distance >> drop << sign_bits | sign;
  }

  // Bits above the element's are not 0.
  ARRCOMP_METHOD Word join(Word u) const {
    const Word top = splat<Word>(highest >> drop << drop);
    const Word magnitude = (top - (u >> sign_bits << drop)) & ones<Word>(magnitude_bits);
    const Word sign = (u & splat<Word>(static_cast<Scalar>(sign_bits))) << magnitude_bits;
    return sign | magnitude;
  }
};

}  // namespace arrcomp::ARRCOMP_ISA
