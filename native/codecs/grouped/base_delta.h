// Base-delta-immediate coding of lines of 64 words (G. Pekhimenko et al., "Base-Delta-Immediate Compression", PACT 2012)
// on lanes: a line's words as signed deltas from one of its bases, and back. FORMAT.md, section 6.
#pragma once
#include "codecs/packing.h"
#include "codecs/transform.h"
#include "stream/base_delta.h"

namespace arrcomp::ARRCOMP_ISA {

// The low `bits` of a word, as a scalar; `bits` may be 0.
template <class Scalar>
ARRCOMP_INLINE constexpr Scalar low_ones(int bits) {
  return bits == 0 ? Scalar{0} : static_cast<Scalar>(static_cast<Scalar>(~Scalar{0}) >> (sizeof(Scalar) * 8 - bits));
}

// How a line is coded.
template <class Scalar>
struct LineCode {
  int mode;
  int delta_bits;  // of a raw line, the words' bits
  Scalar bases[max_bases];

  ARRCOMP_METHOD bool is_raw() const { return mode == raw_line; }
  ARRCOMP_METHOD int base_count() const { return is_raw() ? 0 : line_bases(mode); }
  ARRCOMP_METHOD int selector_bits() const { return is_raw() ? 0 : line_selector_bits(mode); }
  ARRCOMP_METHOD int row_bits() const { return delta_bits + selector_bits(); }

  ARRCOMP_METHOD uint8_t tag(int step) const {
    return static_cast<uint8_t>(mode << 5 | (is_raw() ? 0 : delta_bits / step));
  }

  // From a tag that the reader has found legal, of words of so many bits.
  ARRCOMP_METHOD static LineCode of(uint32_t tag, int step, int bits) {
    const int mode = static_cast<int>(tag >> 5);
    return {mode, mode == raw_line ? bits : static_cast<int>(tag & 31) * step, {0, 0}};
  }

  // What a delta of -2^(delta_bits - 1) is added to for each candidate: zero first where the mode has it, then bases.
  ARRCOMP_METHOD Scalar half() const {
    return is_raw() || delta_bits == 0 ? 0 : static_cast<Scalar>(Scalar{1} << (delta_bits - 1));
  }
  ARRCOMP_METHOD Scalar lowest(int candidate) const {
    const bool zero = line_has_zero(mode) || is_raw();
    const Scalar base = candidate == 0 ? (zero ? 0 : bases[0]) : candidate == 1 && zero ? bases[0] : bases[1];
    return static_cast<Scalar>(base - half());
  }
};

// A line's words to what is packed, a selector above a delta, and back.
template <class Word>
class LineCoder {
  using Scalar = typename Word::scalar;

 public:
  ARRCOMP_METHOD LineCoder(const LineCode<Scalar>& code, int bits)
      : selector_bits_(code.selector_bits()),
        delta_bits_(code.delta_bits),
        words_(low_ones<Scalar>(bits)),
        deltas_(low_ones<Scalar>(code.delta_bits)),
        half_(code.half()),
        lowest_{code.lowest(0), code.lowest(1), code.lowest(2)} {}

  ARRCOMP_METHOD Word encode(Word x) const {
    const Word first = above(x, 0);
    if (selector_bits_ == 0) return delta(first);
    const Word second = above(x, 1);
    if (selector_bits_ == 1) {
      const Mask is_first = fits(first);
      return delta(select(is_first, first, second)) | select(is_first, splat<Word>(0), selector(1));
    }
    const Mask is_first = fits(first), is_second = fits(second);
    const Word later = select(is_second, second, above(x, 2));
    const Word later_selector = select(is_second, selector(1), selector(2));
    return delta(select(is_first, first, later)) | select(is_first, splat<Word>(0), later_selector);
  }

  // Gives the word's bits, and anything above them.
  ARRCOMP_METHOD Word decode(Word packed) const {
    Word lowest = splat<Word>(lowest_[0]);
    if (selector_bits_ > 0) {
      const Word selector = packed >> delta_bits_;
      packed = packed & splat<Word>(deltas_);
      if (selector_bits_ == 2) lowest = select(eq(selector, splat<Word>(1)), splat<Word>(lowest_[1]), lowest);
      const Word last = splat<Word>(selector_bits_ == 2 ? lowest_[2] : lowest_[1]);
      lowest = select(lt(selector, splat<Word>(static_cast<Scalar>(selector_bits_))), lowest, last);
    }
    return (packed ^ splat<Word>(half_)) + lowest;
  }

 private:
  // The distance from the least word that a candidate reaches.
  ARRCOMP_METHOD Word above(Word x, int candidate) const {
    return (x - splat<Word>(lowest_[candidate])) & splat<Word>(words_);
  }
  ARRCOMP_METHOD Mask fits(Word distance) const { return ge(splat<Word>(deltas_), distance); }
  ARRCOMP_METHOD Word delta(Word distance) const { return (distance ^ splat<Word>(half_)) & splat<Word>(deltas_); }
  ARRCOMP_METHOD Word selector(Scalar candidate) const {
    return splat<Word>(static_cast<Scalar>(candidate << delta_bits_));
  }

  int selector_bits_, delta_bits_;
  Scalar words_, deltas_, half_;
  Scalar lowest_[max_bases + 1];
};

// Elements' bits and the words of a chunk: without low bits that are 0 in all of them, and, where signs differ, with a
// float's sign below its magnitude, so that near numbers are near words.
struct WordForm {
  int shift, bits;  // bits: of a word
  bool sign_last;

  template <class Word>
  ARRCOMP_METHOD Word word(Word element) const {
    const Word x = element >> shift;
    return sign_last ? (x << 1 & ones<Word>(bits)) | x >> (bits - 1) : x;
  }

  template <class Word>
  ARRCOMP_METHOD Word element(Word x) const {
    if (sign_last) {
      x = x & ones<Word>(bits);
      x = x >> 1 | (x & splat<Word>(1)) << (bits - 1);
    }
    return x << shift;
  }
};

}  // namespace arrcomp::ARRCOMP_ISA
