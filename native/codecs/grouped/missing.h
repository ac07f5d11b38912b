// Where a chunk misses elements: those whose bits are all the same (NaN, or a number that stands for no value) are left
// out of it, and a mask tells their places. FORMAT.md, section 3.5.
#pragma once
#include "codecs/chunk.h"
#include "codecs/grouped/missing_head.h"
#include "codecs/packing.h"

namespace arrcomp::ARRCOMP_ISA {

constexpr int mask_rows = rows_per_chunk / lanes_per_row;  // of a chunk's mask: a word for each row of elements

// Instead of marks there is a bit for each element.
constexpr int shift_of_bits = 15;

// Writes the fields of a chunk's side data; `is_nan`: the missing elements are the usual NaN.
ARRCOMP_INLINE uint8_t* write_missing_head(uint8_t* out, const MissingHead& head, bool is_nan) {
  return write_number(out, static_cast<uint32_t>(head.present | is_nan << 12 | head.inverted << 13 | head.edges << 14 |
                                                 head.marks << 16) |
                               static_cast<uint32_t>(head.shift) << 28);
}

// Reads those of a chunk of `count` elements; false where they are not legal.
ARRCOMP_INLINE bool read_missing_head(const uint8_t* in, int count, MissingHead& head, bool& is_nan) {
  const auto fields = read_number<uint32_t>(in);
  head.present = static_cast<int>(fields & 4095);
  is_nan = fields >> 12 & 1;
  head.inverted = fields >> 13 & 1;
  head.edges = fields >> 14 & 1;
  head.marks = static_cast<int>(fields >> 16 & 4095);
  head.shift = static_cast<int>(fields >> 28);
  return (fields >> 15 & 1) == 0 && head.present < count && head.marks <= count &&
         (head.shift <= max_mark_shift || head.shift == shift_of_bits);
}

// The bits of marks: their lower parts, and the upper ones in unary.
ARRCOMP_INLINE int upper_bits(int marks, int shift, int count) { return marks + ((count - 1) >> shift) + 1; }
ARRCOMP_INLINE uint32_t bits_of_marks(int marks, int shift, int count) {
  if (shift == shift_of_bits) return static_cast<uint32_t>(count);
  return marks == 0 ? 0 : static_cast<uint32_t>(marks * shift + upper_bits(marks, shift, count));
}

// The bits of the usual NaN of a type.
ARRCOMP_INLINE uint64_t usual_nan(const Element& element) {
  return ((uint64_t{2} << element.exponent_bits) - 1) << (element.mantissa_bits - 1);
}

// ---- marks to masks

// Up to 32 bits from bit `at` on of `words` 32-bit words.
ARRCOMP_INLINE uint32_t bits_from(const uint8_t* in, int words, int at) {
  const int i = at / 32, k = at % 32;
  const uint32_t low = i < words ? read_number<uint32_t>(in + 4 * i) >> k : 0;
  return k == 0 || i + 1 >= words ? low : low | read_number<uint32_t>(in + 4 * (i + 1)) << (32 - k);
}

// Marks in the coding of P. Elias (J. ACM 21, 1974) and R. Fano (1971): of each the low bits, one plane of bits after the
// other, then the upper parts, each as so many zeros more than the one before, and a one. Sets the bits of `marked`.
ARRCOMP_APART bool read_marks(const MissingHead& head, const uint8_t* in, int count, uint32_t* marked) {
  const int lower = head.marks * head.shift, upper = upper_bits(head.marks, head.shift, count);
  const int words = (lower + upper + 31) / 32;
  int rank = 0;
  for (int i = 0; i < upper; i += lanes_per_row) {
    const Mask own = mask(bits_from(in, words, lower + i) & low_mask(upper - i));
    const U32 ranks = prefix_sum(select(own, splat<U32>(1), splat<U32>(0))) - splat<U32>(1);
    const U32 zeros = lane_numbers() + splat<U32>(static_cast<uint32_t>(i - rank)) - ranks;
    U32 low = splat<U32>(0);
    for (int b = 0; b < head.shift; ++b) {
      const U32 plane = splat<U32>(bits_from(in, words, b * head.marks + rank));
      low = low | (srlv(plane, ranks & splat<U32>(31)) & splat<U32>(1)) << b;
    }
    const U32 at = zeros << head.shift | low;
    const Mask inside = lt(at, splat<U32>(static_cast<uint32_t>(count))) & own;
    if (any(~inside & own)) return false;
    set_bits(marked, at, inside);
    rank += ARRCOMP_ISA::count(own);
  }
  return rank == head.marks;
}

// All bits where the lowest is set.
ARRCOMP_INLINE U32 all_or_none(U32 x) { return splat<U32>(0) - (x & splat<U32>(1)); }

// Marks become the masks of what is missing, a word for each row.
ARRCOMP_INLINE void masks_of_marks(const MissingHead& head, uint32_t* masks) {
  U32 flipped = splat<U32>(head.inverted ? ~0u : 0);
  for (int j = 0; j < mask_rows; ++j) {
    U32 x = load(masks + j * lanes_per_row);
    if (head.edges) {
      for (int k = 1; k < 32; k *= 2) x = x ^ x << k;
      const U32 ends = prefix_sum(x >> 31), before = ends - (x >> 31);
      x = x ^ flipped ^ all_or_none(before);
      flipped = flipped ^ all_or_none(broadcast_last(ends));
    } else {
      x = x ^ flipped;
    }
    store(masks + j * lanes_per_row, x);
  }
}

// The masks of what is missing of a chunk of `count` elements, a word for each row, from its marks at `in`. False where
// these are corrupt.
ARRCOMP_CALLED bool read_masks(MissingHead head, const uint8_t* in, int count, uint32_t* masks) {
  sync();  // what was there before has been read
  for (int j = 0; j < mask_rows; ++j) store(masks + j * lanes_per_row, splat<U32>(0));
  sync();
  if (head.shift == shift_of_bits) {
    if (leader())
      for (int r = 0; r * lanes_per_row < count; ++r) masks[r] = read_number<uint32_t>(in + 4 * r);
    sync();
    return true;
  }
  if (head.marks > 0 && !read_marks(head, in, count, masks)) return false;
  sync();
  masks_of_marks(head, masks);
  sync();
  return true;
}

}  // namespace arrcomp::ARRCOMP_ISA
