// Chunks of floats that are multiples of one number, such as decimals: each becomes the integer that counts it.
// FORMAT.md, section 3.6.
#pragma once
#include "codecs/grouped/choices.h"
#include "codecs/grouped/dictionary_memory.h"
#include "codecs/grouped/numbered_elements.h"
#include "codecs/grouped/rans_tables.h"
#include "codecs/multiple_integers.h"
#include "codecs/packing.h"
#include "codecs/transform.h"
#include "stream/multiples_choice.h"

namespace arrcomp::ARRCOMP_ISA {

// Between elements and their numbers: what counts the element without its sign, in the order of signed zeros and numbers.
template <class T>
class ChunkMultiples {
  using Word = typename T::Word;
  using Scalar = typename Word::scalar;

 public:
  ARRCOMP_METHOD ChunkMultiples(const Element& element, int kind) : integers_(multiples_of_chunk(element, kind)) {}

  // In lanes of `failed` no number gives back the element.
  ARRCOMP_METHOD Word number(Word bits, Mask& failed) const {
    const Word sign = bits & splat<Word>(sign_bit), size = bits ^ sign;
    return order_floats(integers_.of(size, T::widen(size), failed) | sign, T::width);
  }

  ARRCOMP_METHOD Word element(Word number) const {
    const Word ordered = order_floats(number, T::width), sign = ordered & splat<Word>(sign_bit);
    return integers_.element(ordered ^ sign) | sign;
  }

 private:
  static constexpr Scalar sign_bit = Scalar{1} << (T::width - 1);

  MultipleIntegers<T> integers_;
};

// As write_numbers.
template <class T>
ARRCOMP_CALLED bool count_multiples(Element element, int kind, ElementRange elements, typename T::storage* numbers,
                                    uint32_t* failed) {
  const ChunkMultiples<T> multiples(element, kind);
  return write_numbers<T>(elements, numbers, failed,
                          [&](typename T::Word bits, Mask& own) ARRCOMP_LAMBDA { return multiples.number(bits, own); });
}

// Replaces the `count` numbers at `elements` by the multiples that they count.
template <class T>
ARRCOMP_PART void make_multiples(Element element, int kind, typename T::storage* elements, int count) {
  const ChunkMultiples<T> multiples(element, kind);
  replace_each<T>(elements, count, [&](typename T::Word number) ARRCOMP_LAMBDA { return multiples.element(number); });
}

// How many of some values, and one more, may be no multiples: other elements are told by two.
ARRCOMP_INLINE int most_misses(int seen) { return seen < 4 ? 1 : 2 + seen / 16; }

// Of which multiples a sample's values are, or 0: their integers need some bits less than the values, and few of these may
// be exceptions. Each lane tries a kind; the one that takes the fewest bits is chosen. Zeros tell nothing, nor do NaN and
// numbers that are too large for any kind, such as what stands for missing values.
template <class T>
ARRCOMP_CALLED int find_multiples(Sample<typename T::Word> sample, const Tables* tables, int mantissa_bits) {
  using Word = typename T::Word;
  using Real = typename T::Real;
  using Scalar = typename Word::scalar;
  constexpr int most_places = 128, most = 32, least = 8, saved_bits = 2;
  constexpr Scalar without_sign = static_cast<Scalar>(~Scalar{0}) >> 1;
  const auto& kinds = tables->multiples_of(Scalar{});
  const Real multiplier = T::widen(load(kinds.multiplier)), divisor = T::widen(load(kinds.divisor)),
             inverse = T::widen(load(kinds.inverse));
  const Real largest = splat<Real>(static_cast<typename Real::scalar>(uint64_t{1} << (mantissa_bits - saved_bits)));
  Word all = splat<Word>(0);
  U32 misses = splat<U32>(0);
  int seen = 0;
  for (int place = 0; place < most_places && seen < most; ++place) {
    const int row = place % sample.count, lane = (5 * place + place / sample.count) % lanes_per_row;
    const Word value = splat<Word>(sample.rows[row * sample.distance + lane] & without_sign);
    const Real scaled = T::widen(value) * inverse;
    const Mask is_small = le(scaled, largest);
    if (!any(is_small & ne(value, splat<Word>(0)))) continue;
    const Word integer = round_to_integer(select(is_small, scaled, splat<Real>(0)));
    const Mask holds = is_small & eq(T::narrow(seed_value(integer) * multiplier / divisor), value);
    all = all | select(holds, integer, splat<Word>(0));
    misses = misses + select(holds, splat<U32>(0), splat<U32>(1));
    if (static_cast<int>(min_all(misses)) > most_misses(seen)) return 0;
    ++seen;
  }
  if (seen < least) return 0;
  constexpr int shift_of_width = T::width == 64 ? 6 : 5, shift_of_position = 4, shift_of_most = 5, bits_of_lane = 5;
  const U32 bits_of_exceptions = (misses << shift_of_width) + (misses << shift_of_position);
  const U32 bits = bits_of_exceptions + (bit_length(all) << shift_of_most);
  return static_cast<int>(min_all(bits << bits_of_lane | lane_numbers()) & low_mask(bits_of_lane)) + 1;
}

// Whether elements may be multiples that tell them in fewer bits than a bound does, as a sample of them says: how many of a
// row's elements may then be none, in 1/128, so that these take about half of the bits saved. Else less than 0.
template <class T>
ARRCOMP_CALLED int others_of_wider_multiples(Sample<typename T::Word> sample, const Tables* tables, Element element,
                                             double bound) {
  constexpr double wider = 1 + 0x1p-30;  // steps of whole numbers are as exact, and faster
  const int kind = find_multiples<T>(sample, tables, element.mantissa_bits);
  if (kind == 0) return -1;
  const Multiples multiples = multiples_of_chunk(element, kind);
  const int bits = saved_bits(multiples, wider * bound);
  return bits < 0 ? -1 : 4 + 32 * bits;
}

}  // namespace arrcomp::ARRCOMP_ISA
