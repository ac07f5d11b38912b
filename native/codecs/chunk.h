// The header of a chunk's side data: one type that writes, reads and checks it (FORMAT.md, section 3.2).
#pragma once
#include <cstring>

#include "inline.h"
#include "lanes/lanes.h"
#include "stream/constants.h"
#include "stream/element.h"
#include "stream/plan.h"

namespace arrcomp::ARRCOMP_ISA {

// Numbers in a payload are aligned to 4 bytes, or to their size where that is less.
template <class Number>
ARRCOMP_INLINE Number read_number(const uint8_t* p) {
  Number value;
  memcpy(&value, __builtin_assume_aligned(p, sizeof value < 4 ? sizeof value : 4), sizeof value);
  return value;
}

template <class Number>
ARRCOMP_INLINE uint8_t* write_number(uint8_t* p, Number value) {
  if (leader()) memcpy(p, &value, sizeof value);
  return p + sizeof value;
}

struct ChunkHead {
  Transform transform = Transform::integer;
  Coder coder = Coder::none;
  MaskKind mask = MaskKind::none;
  bool difference = false;  // each element is coded as its difference from the one before
  bool plain = false;       // what is coded is not negative: no zigzag; or, of exponents, values: no sign
  bool has_base = false;
  bool has_exceptions = false;
  bool has_missing = false;  // elements
  int shift = 0;             // low bits stored beside the entropy coder's symbols
  int table = 0;             // of the entropy coder, or what stands for several
  int drop = 0;              // trailing zeros of the mantissa that are not stored, of exponents
  int dry = 0;               // stands for so many rows in which states take no words, of others
  uint64_t base = 0;
  uint64_t step = 0;  // signed: what differences are coded as their distance from

  ARRCOMP_METHOD bool has_step() const { return difference && (step != 0 || plain); }
  // Whether all symbols have one of the format's tables.
  ARRCOMP_METHOD bool has_static_table() const { return coder == Coder::entropy && table < table_count; }
  ARRCOMP_METHOD bool has_tables_of_tiles() const { return coder == Coder::entropy && table == tables_of_tiles; }
  ARRCOMP_METHOD bool has_classes() const { return coder == Coder::entropy && table == table_of_classes; }
  ARRCOMP_METHOD bool has_contexts() const { return coder == Coder::entropy && table == tables_of_contexts; }

  ARRCOMP_PART uint8_t* write(uint8_t* out, int word_bits) const {
    const uint32_t mode = static_cast<uint32_t>(transform) | static_cast<uint32_t>(coder) << 2 |
                          static_cast<uint32_t>(mask) << 4 | static_cast<uint32_t>(difference) << 6 |
                          static_cast<uint32_t>(difference ? has_step() : plain) << 7;
    const uint32_t fields = mode | static_cast<uint32_t>(shift | has_base << 7) << 8 |
                            static_cast<uint32_t>(table) << 16 |
                            static_cast<uint32_t>(drop | dry | has_exceptions << 6 | has_missing << 7) << 24;
    out = write_number(out, fields);
    if (has_base) out = write_word(out, base, word_bits);
    return has_step() ? write_word(out, step << 1 | static_cast<uint64_t>(plain), word_bits) : out;
  }

  // Reads the header at `in` and moves past it; false where it is not legal for this element type.
  ARRCOMP_METHOD bool read(const uint8_t*& in, const uint8_t* end, const Element& element, bool may_quantize) {
    const int word_bits = element.width == 64 ? 64 : 32;
    if (end - in < 4) return false;
    const uint32_t fields = read_number<uint32_t>(in);
    in += 4;
    if ((fields >> 2 & 3) == 3) return false;
    transform = static_cast<Transform>(fields & 3);
    coder = static_cast<Coder>(fields >> 2 & 3);
    mask = static_cast<MaskKind>(fields >> 4 & 3);
    difference = fields >> 6 & 1;
    plain = fields >> 7 & 1;
    shift = fields >> 8 & 127;
    has_base = fields >> 15 & 1;
    table = fields >> 16 & 255;
    const bool is_exponent = transform == Transform::exponent;
    drop = is_exponent ? fields >> 24 & 63 : 0;
    dry = is_exponent ? 0 : fields >> 24 & 63;
    has_exceptions = fields >> 30 & 1;
    has_missing = fields >> 31;
    base = step = 0;
    if (has_base && !read_word(in, end, base, word_bits)) return false;
    if (difference && plain && !is_exponent) {
      if (!read_word(in, end, step, word_bits)) return false;
      plain = step & 1;
      step = word_bits == 64 ? static_cast<uint64_t>(static_cast<int64_t>(step) >> 1)
                             : static_cast<uint64_t>(static_cast<int32_t>(step) >> 1);
    }
    return is_legal(element, word_bits, may_quantize);
  }

 private:
  ARRCOMP_METHOD static uint8_t* write_word(uint8_t* out, uint64_t word, int bits) {
    return bits == 64 ? write_number(out, word) : write_number(out, static_cast<uint32_t>(word));
  }

  ARRCOMP_METHOD static bool read_word(const uint8_t*& in, const uint8_t* end, uint64_t& word, int bits) {
    if (end - in < bits / 8) return false;
    word = bits == 64 ? read_number<uint64_t>(in) : read_number<uint32_t>(in);
    in += bits / 8;
    return true;
  }

  ARRCOMP_PART bool is_legal(const Element& element, int word_bits, bool may_quantize) const {
    if (table >= table_count && !has_tables_of_tiles() && !has_contexts() && !has_classes()) return false;
    if (has_contexts() && (mask != MaskKind::none || shift > 0)) return false;
    if (shift > word_bits || (has_missing && mask == MaskKind::marks)) return false;
    if (transform == Transform::exponent) return element.is_float() && has_base && drop <= element.mantissa_bits;
    return (dry == 0 || (coder == Coder::entropy && dry <= most_dry)) &&
           (transform != Transform::quantized || (element.is_quantizable && may_quantize));
  }
};

}  // namespace arrcomp::ARRCOMP_ISA
