// Interleaved rANS on 32 lanes (J. Duda, arXiv:1311.2540; lanes as in F. Giesen, arXiv:1402.3392), 11-bit static tables
// laid out by the alias method, so that a decoder finds symbol, frequency and rank with two lookups among 64 entries.
// FORMAT.md, section 4.
#pragma once
#include "codecs/grouped/rans_tables.h"
#include "inline.h"
#include "lanes/lanes.h"

namespace arrcomp::ARRCOMP_ISA {

struct SymbolDecoder {
  AliasTable aliases;
  const uint32_t* slots;
  uint32_t escape;

  ARRCOMP_METHOD SymbolDecoder() : slots(nullptr), escape(0) {}
  ARRCOMP_METHOD explicit SymbolDecoder(const DecodeTable& t)
      : aliases(alias_table(t.alias)), slots(t.slot), escape(t.escape) {}

  // For chunks whose rows are decoded one after the other: one table at a time is near.
  ARRCOMP_METHOD static SymbolDecoder nearby(const DecodeTable& t) {
    SymbolDecoder decoder(t);
    decoder.slots = ARRCOMP_ISA::nearby<slot_count>(t.slot);
    return decoder;
  }

  // The next symbol of each lane, before the lanes have taken new words.
  ARRCOMP_METHOD U32 step(U32& x) const {
    if constexpr (wide_permutations) {
      return take_slot(lookup_alias(aliases, x), x);
    } else {
      return take_slot(gather(slots, x & splat<U32>(slot_count - 1)), x);
    }
  }

  ARRCOMP_METHOD static U32 take_slot(const AliasSlots& slot, U32& x) {
    x = slot.frequency * (x >> precision) + slot.rank;
    return slot.symbol;
  }
  // Of a state's entry in `slot` of a table.
  ARRCOMP_METHOD static U32 take_slot(U32 slot, U32& x) {
    x = (slot >> 6 & splat<U32>(slot_count - 1)) * (x >> precision) + (slot >> 17);
    return slot & splat<U32>(symbol_count - 1);
  }

  ARRCOMP_METHOD Mask is_escape(U32 symbol) const { return eq(symbol, splat<U32>(escape)); }
};

// What an escaped value has beyond the escape symbol: one word, or 65535 and the whole number in the words after it.
// Thereafter the words of 7 rows are near.
ARRCOMP_INLINE void take_rest(WordSource& words, Mask escaped, U32& rest) {
  words.bring_near();
  rest = splat<U32>(0);
  words.take(rest, escaped);
  const Mask is_long = eq(rest, splat<U32>(long_escape)) & escaped;
  if (!any(is_long)) return;
  U32 whole = splat<U32>(0);
  words.take(whole, is_long);
  words.take(whole, is_long);
  words.bring_near();
  rest = select(is_long, whole, rest);
}

ARRCOMP_INLINE void take_rest(WordSource& words, Mask escaped, U64& rest) {
  words.bring_near();
  U32 low = splat<U32>(0), high = splat<U32>(0);
  words.take(low, escaped);
  const Mask is_long = eq(low, splat<U32>(long_escape)) & escaped;
  if (any(is_long)) {
    U32 whole = splat<U32>(0);
    words.take(high, is_long);
    words.take(high, is_long);
    words.take(whole, is_long);
    words.take(whole, is_long);
    words.bring_near();
    low = select(is_long, whole, low);
  }
  rest = join(low, high);
}

// One row: symbols, with escaped values put in. The caller brings words near before each (at most) 8 rows. States below
// `lowest` take a word.
template <class Word, class Decoder>
ARRCOMP_INLINE Word decode_row(const Decoder& decoder, U32& states, WordSource& words, uint32_t lowest = lowest_state) {
  const U32 symbol = decoder.step(states);
  words.take(states, lt(states, splat<U32>(lowest)));
  Word value;
  widen_to(symbol, value);
  const Mask escaped = decoder.is_escape(symbol);
  if (any(escaped)) {
    Word rest;
    take_rest(words, escaped, rest);
    value = value + rest;
  }
  return value;
}

// What a table says of symbols: as two tables, or as one of pairs.
template <bool are_paired>
class SymbolFields {
 public:
  ARRCOMP_METHOD SymbolFields() {}
  ARRCOMP_METHOD SymbolFields(U32 fields, U32 reciprocal) : fields_(fields), reciprocal_(reciprocal) {}

  // Whether a state has no room for the symbol.
  ARRCOMP_METHOD Mask is_full(U32 x) const {
    if constexpr (are_paired) return ge_varying(x, minus_shifted(minus_frequency(), 32 - precision));
    return ge_varying(x, fields_ << (32 - precision));  // the frequency, with the other fields shifted out
  }
  // How often x has the symbol's frequency.
  ARRCOMP_METHOD U32 quotient(U32 x) const {
    const U32 product = mulhi(x, reciprocal_);
    if constexpr (are_paired) return srl_modulo(product, fields_ >> 12);
    return srlv(product, fields_ >> precision & splat<U32>(15));
  }
  // What remains then, as a place so far behind the symbol's first; of pairs in bytes.
  ARRCOMP_METHOD U32 place(U32 x, U32 quotient) const {
    if constexpr (are_paired) return (quotient * minus_frequency() + x << 1) + (fields_ & splat<U32>(0xfff));
    const U32 remainder = x - quotient * (fields_ & splat<U32>(slot_count - 1));
    return remainder + (fields_ >> (precision + 4));
  }

 private:
  ARRCOMP_METHOD U32 minus_frequency() const { return sar(fields_, 20); }

  U32 fields_, reciprocal_;
};

// Gives a symbol to states that have room for it.
template <class Encoder, class Fields>
ARRCOMP_INLINE U32 pushed(const Encoder& encoder, const Fields& symbol, U32 x) {
  const U32 quotient = symbol.quotient(x);
  return (quotient << precision) + encoder.slot(symbol.place(x, quotient));
}

template <class Encoder, class Fields>
ARRCOMP_INLINE void encode_symbol(const Encoder& encoder, const Fields& symbol, U32& x, uint16_t*& words) {
  const Mask full = symbol.is_full(x);
  words = append(words, x, full);
  x = pushed(encoder, symbol, select(full, x >> 16, x));
}

// Where no state has given a word away yet: false, with nothing done, where one would have to, now or once the lowest
// state is added to all.
template <class Encoder, class Fields>
ARRCOMP_INLINE bool encode_dry_symbol(const Encoder& encoder, const Fields& symbol, U32& x) {
  if (any(symbol.is_full(x))) return false;
  const U32 next = pushed(encoder, symbol, x);
  if (any(ge(next, splat<U32>(0u - lowest_state)))) return false;
  x = next;
  return true;
}

ARRCOMP_INLINE U32 symbol_of(U32 value, uint32_t escape) { return min(value, splat<U32>(escape)); }
ARRCOMP_INLINE U32 symbol_of(U64 value, uint32_t escape) { return lo(min(value, splat<U64>(escape))); }

struct SymbolEncoder {
  Table64 divisions, reciprocals;
  const uint32_t (*pairs)[2];
  const uint16_t* slots;  // or runs of them
  uint32_t escape;

  ARRCOMP_METHOD SymbolEncoder() : pairs(nullptr), slots(nullptr), escape(0) {}
  ARRCOMP_METHOD explicit SymbolEncoder(const EncodeTable& t) : SymbolEncoder(t, t.entries) {}
  // `entries`: a copy of those in the table.
  ARRCOMP_METHOD SymbolEncoder(const EncodeTable& t, const EncodeEntries& entries)
      : divisions(table(wide_permutations ? t.run_division : t.division)),
        reciprocals(table(t.reciprocal)),
        pairs(entries.pairs),
        slots(wide_permutations ? t.runs[0] : entries.slot),
        escape(t.escape) {}

  using Fields = SymbolFields<gathers_pairs>;
  ARRCOMP_METHOD Fields fields_of(U32 symbol) const {
    if constexpr (gathers_pairs) {
      U32 fields, reciprocal;
      gather_pair(pairs, symbol, fields, reciprocal);
      return {fields, reciprocal};
    } else {
      return {lookup(divisions, symbol), lookup(reciprocals, symbol)};
    }
  }

  ARRCOMP_METHOD U32 slot(U32 place) const {
    if constexpr (gathers_pairs) return gather_at(slots, place);
    if constexpr (wide_permutations) return lookup_runs<runs_per_cell>(slots, place);
    return gather(slots, place);
  }

  template <class Word>
  ARRCOMP_METHOD U32 symbol_of(Word value) const {
    return ARRCOMP_ISA::symbol_of(value, escape);
  }
  ARRCOMP_METHOD Mask is_escape(U32 symbol) const { return eq(symbol, splat<U32>(escape)); }
  template <class Word>
  ARRCOMP_METHOD Word rest_of(Word value) const {
    return value - splat<Word>(escape);
  }
};

ARRCOMP_INLINE uint16_t* append_rest(uint16_t* words, U32 rest, Mask escaped) {
  const U32 marker = splat<U32>(long_escape);
  const Mask is_long = ge(rest, marker) & escaped;
  if (any(is_long)) {
    words = append(words, rest, is_long);
    words = append(words, rest >> 16, is_long);
  }
  return append(words, min(rest, marker), escaped);
}

ARRCOMP_INLINE uint16_t* append_rest(uint16_t* words, U64 rest, Mask escaped) {
  const Mask is_long = ge(rest, splat<U64>(long_escape)) & escaped;
  if (any(is_long)) {
    words = append(words, lo(rest), is_long);
    words = append(words, lo(rest) >> 16, is_long);
    words = append(words, hi(rest), is_long);
    words = append(words, hi(rest) >> 16, is_long);
  }
  return append(words, lo(min(rest, splat<U64>(long_escape))), escaped);
}

// Words that a row of the coder can append at most.
template <class Word>
constexpr int max_words_per_row = lanes_per_row * (2 + sizeof(typename Word::scalar) / 2);

// The inverse of decode_row. Words are appended in the opposite order.
template <class Encoder, class Word>
ARRCOMP_INLINE void encode_row(const Encoder& encoder, Word value, U32& states, uint16_t*& words) {
  const U32 symbol = encoder.symbol_of(value);
  const Mask escaped = encoder.is_escape(symbol);
  if (any(escaped)) words = append_rest(words, encoder.rest_of(value), escaped);
  encode_symbol(encoder, encoder.fields_of(symbol), states, words);
}

// The same before any state has given a word away; false where one would have to.
template <class Encoder, class Word>
ARRCOMP_INLINE bool encode_dry_row(const Encoder& encoder, Word value, U32& states, uint16_t*& words) {
  const U32 symbol = encoder.symbol_of(value);
  if (!encode_dry_symbol(encoder, encoder.fields_of(symbol), states)) return false;
  const Mask escaped = encoder.is_escape(symbol);
  if (any(escaped)) words = append_rest(words, encoder.rest_of(value), escaped);
  return true;
}

// Codes rows from `rows` - 1 down with encode_dry(row, states, words), which is false where a state has no room: as many
// as a chunk's head stands for, which is returned. They are taken off `rows`.
template <class EncodeDry>
ARRCOMP_INLINE int encode_dry_rows(int& rows, U32& states, uint16_t*& words, const uint16_t* limit,
                                   EncodeDry encode_dry) {
  const int all = rows;
  states = splat<U32>(first_dry_state);
  int dry = 0;
  for (; dry < most_dry && words <= limit; ++dry) {
    const int end = all - dry_rows_of(dry + 1);
    uint16_t* own_words = words;
    U32 own = states;
    int row = rows;
    for (; row > end && row > 0; --row)
      if (!encode_dry(row - 1, own, own_words)) break;
    if (row > end) break;
    rows = row;
    words = own_words;
    states = own;
  }
  sync();  // what follows is written over what did not fit
  states = dry == 0 ? splat<U32>(lowest_state) : states + splat<U32>(lowest_state);
  return dry;
}

// The rows of a tile in registers, the last first: what has no escapes passes no test for them.
ARRCOMP_INLINE void encode_tile(const SymbolEncoder& encoder, const U32 (&values)[rows_per_tile], U32& states,
                                uint16_t*& words) {
  U32 most = values[0];
  ARRCOMP_UNROLL for (const U32& value : values) most = max(most, value);
  if (any(ge(most, splat<U32>(encoder.escape)))) {
    ARRCOMP_UNROLL for (int i = rows_per_tile; i > 0; --i) encode_row(encoder, values[i - 1], states, words);
    return;
  }
  constexpr int at_once = 4;  // whose tables are read before any is stored
  ARRCOMP_UNROLL for (int end = rows_per_tile; end > 0; end -= at_once) {
    SymbolEncoder::Fields symbols[at_once];
    ARRCOMP_UNROLL for (int i = 0; i < at_once; ++i) symbols[i] = encoder.fields_of(values[end - 1 - i]);
    ARRCOMP_UNROLL for (const auto& symbol : symbols) encode_symbol(encoder, symbol, states, words);
  }
}

}  // namespace arrcomp::ARRCOMP_ISA
