// How a writer codes a line: the mode and the width that take the fewest bits, bases counted; and the bases. A reader
// needs none of this.
#pragma once
#include "codecs/grouped/base_delta.h"

namespace arrcomp::ARRCOMP_ISA {

// What a chunk's lines have in common.
struct LineLimits {
  int bits;         // of a word
  int base_bits;    // that a base takes
  bool is_signed;   // words are in the order of signed numbers
  int bases;        // at most, in a line
  uint64_t widths;  // bit d: deltas may have d bits; bit 0 is set
};

template <class Word>
class LineChooser {
  using Scalar = typename Word::scalar;
  using Code = LineCode<Scalar>;

 public:
  // The words of a line of one row come twice.
  ARRCOMP_METHOD LineChooser(const LineLimits& limits, Word row0, Word row1, int rows)
      : limits_(limits),
        ones_(low_ones<Scalar>(limits.bits)),
        bias_(limits.is_signed ? static_cast<Scalar>(Scalar{1} << (limits.bits - 1)) : Scalar{0}),
        words_(rows * lanes_per_row),
        key0_(row0 ^ splat<Word>(bias_)),
        key1_(row1 ^ splat<Word>(bias_)),
        low_(least(min(key0_, key1_))),
        high_(max_all(max(key0_, key1_))) {}

  ARRCOMP_PART Code choose() {
    mode_ = raw_line;
    width_ = limits_.bits;
    cost_ = words_ * limits_.bits;
    consider(0, width_from_zero());
    consider(1, bit_length(static_cast<Scalar>(high_ - low_)));
    for (int mode = 2; mode <= largest_line_mode; ++mode)
      if (line_bases(mode) <= limits_.bases) consider_several(mode);
    Code code{mode_, width_, {0, 0}};
    if (mode_ == 1) code.bases[0] = base_above(low_, width_);
    if (mode_ > 1 && mode_ != raw_line) reaches(mode_, width_, code.bases);
    return code;
  }

 private:
  ARRCOMP_METHOD static Scalar least(Word x) {
    return static_cast<Scalar>(~max_all(x ^ splat<Word>(static_cast<Scalar>(~Scalar{0}))));
  }
  // The base whose deltas reach from the key `first` on.
  ARRCOMP_METHOD Scalar base_above(Scalar first, int width) const { return ((first + half_of(width)) ^ bias_) & ones_; }
  ARRCOMP_METHOD static Scalar half_of(int width) { return static_cast<Scalar>(Scalar{1} << width >> 1); }
  ARRCOMP_METHOD int allowed(int width) const {  // the narrowest that is, or 64
    const uint64_t wider = width < 64 ? limits_.widths >> width : 0;
    return wider == 0 ? 64 : width + bit_length(wider & (0 - wider)) - 1;
  }
  ARRCOMP_METHOD int cost(int mode, int width) const {
    return words_ * (width + line_selector_bits(mode)) + line_bases(mode) * limits_.base_bits;
  }

  ARRCOMP_METHOD void consider(int mode, int needed) {
    const int width = allowed(needed), bits = cost(mode, width);
    if (bits >= cost_) return;
    mode_ = mode;
    width_ = width;
    cost_ = bits;
  }

  // The bits of signed deltas from zero, where words in the order of unsigned numbers have no sign.
  ARRCOMP_METHOD int width_from_zero() const {
    if (!limits_.is_signed) return high_ == 0 ? 0 : bit_length(high_) + 1;
    if (low_ == bias_ && high_ == bias_) return 0;
    return max_of(bit_length(distance_from_zero(low_)), bit_length(distance_from_zero(high_))) + 1;
  }
  ARRCOMP_METHOD Scalar distance_from_zero(Scalar key) const { return key >= bias_ ? key - bias_ : bias_ - 1 - key; }
  ARRCOMP_METHOD static int max_of(int a, int b) { return a < b ? b : a; }

  // Whether any word is within reach of zero.
  ARRCOMP_METHOD bool is_near_zero(int width) const {
    const Scalar half = half_of(width);
    if (limits_.is_signed) return low_ < bias_ + max_of_one(half) && high_ >= bias_ - half;
    return low_ < max_of_one(half) || high_ > static_cast<Scalar>(ones_ - half);
  }
  ARRCOMP_METHOD static Scalar max_of_one(Scalar x) { return x == 0 ? 1 : x; }

  // The narrowest deltas with which a mode reaches all words, where they are narrow enough to pay.
  ARRCOMP_PART void consider_several(int mode) {
    const int left = cost_ - 1 - line_bases(mode) * limits_.base_bits - words_ * line_selector_bits(mode);
    if (left < 0) return;
    const int most = bit_length(limits_.widths & ((uint64_t{2} << left / words_) - 1)) - 1;
    if (line_has_zero(mode) && !is_near_zero(most)) return;  // then the bases alone would do
    Scalar bases[max_bases];
    if (!reaches(mode, most, bases)) return;
    int low = 0, high = most;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (reaches(mode, middle, bases)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    consider(mode, high);
  }

  // Whether every word is within reach of zero or of a base, each of which is put as low as the words left allow.
  ARRCOMP_PART bool reaches(int mode, int width, Scalar (&bases)[max_bases]) const {
    const Word span = splat<Word>(low_ones<Scalar>(width)), ones = splat<Word>(ones_);
    const Word farthest = splat<Word>(static_cast<Scalar>(~Scalar{0}));
    Mask left0 = mask(~0u), left1 = left0;
    if (line_has_zero(mode)) {
      const Word zero = splat<Word>(static_cast<Scalar>(bias_ - half_of(width)));
      left0 = lt(span, (key0_ - zero) & ones);
      left1 = lt(span, (key1_ - zero) & ones);
    }
    ARRCOMP_UNROLL for (int b = 0; b < max_bases; ++b) {
      if (b >= line_bases(mode)) break;
      const Scalar first = least(min(select(left0, key0_, farthest), select(left1, key1_, farthest)));
      const Word low = splat<Word>(first);
      bases[b] = base_above(first, width);
      left0 = left0 & lt(span, key0_ - low);
      left1 = left1 & lt(span, key1_ - low);
    }
    return !any(left0 | left1);
  }

  const LineLimits& limits_;
  Scalar ones_, bias_;
  int words_;
  Word key0_, key1_;
  Scalar low_, high_;  // of the keys, whose unsigned order is the words'

  int mode_, width_, cost_;  // the best so far
};

}  // namespace arrcomp::ARRCOMP_ISA
