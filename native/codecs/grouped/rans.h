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
      const AliasSlots found = lookup_alias(aliases, x);
      x = found.frequency * (x >> precision) + found.rank;
      return found.symbol;
    } else {
      const U32 slot = gather(slots, x & splat<U32>(slot_count - 1));
      x = (slot >> 6 & splat<U32>(slot_count - 1)) * (x >> precision) + (slot >> 17);
      return slot & splat<U32>(symbol_count - 1);
    }
  }
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
template <class Word>
ARRCOMP_INLINE Word decode_row(const SymbolDecoder& decoder, U32& states, WordSource& words,
                               uint32_t lowest = lowest_state) {
  const U32 symbol = decoder.step(states);
  words.take(states, lt(states, splat<U32>(lowest)));
  Word value;
  widen_to(symbol, value);
  const Mask escaped = eq(symbol, splat<U32>(decoder.escape));
  if (any(escaped)) {
    Word rest;
    take_rest(words, escaped, rest);
    value = value + rest;
  }
  return value;
}

// What a table says of symbols: as two tables, or where lanes gather pairs as one of these.
class SymbolFields {
 public:
  ARRCOMP_METHOD SymbolFields() {}
  ARRCOMP_METHOD SymbolFields(U32 fields, U32 reciprocal) : fields_(fields), reciprocal_(reciprocal) {}

  // Whether a state has no room for the symbol.
  ARRCOMP_METHOD Mask is_full(U32 x) const {
    if constexpr (gathers_pairs) return ge_varying(x, minus_shifted(minus_frequency(), 32 - precision));
    return ge_varying(x, fields_ << (32 - precision));  // the frequency, with the other fields shifted out
  }
  // How often x has the symbol's frequency.
  ARRCOMP_METHOD U32 quotient(U32 x) const {
    const U32 product = mulhi(x, reciprocal_);
    if constexpr (gathers_pairs) return srl_modulo(product, fields_ >> 12);
    return srlv(product, fields_ >> precision & splat<U32>(15));
  }
  // What remains then, as the slot of so many after the symbol's first.
  ARRCOMP_METHOD U32 slot(const uint16_t* slots, U32 x, U32 quotient) const {
    if constexpr (gathers_pairs)
      return gather_at(slots, (quotient * minus_frequency() + x << 1) + (fields_ & splat<U32>(0xfff)));
    const U32 remainder = x - quotient * (fields_ & splat<U32>(slot_count - 1));
    const U32 position = remainder + (fields_ >> (precision + 4));
    if constexpr (wide_permutations) return lookup_runs<runs_per_cell>(slots, position);
    return gather(slots, position);
  }

 private:
  ARRCOMP_METHOD U32 minus_frequency() const { return sar(fields_, 20); }

  U32 fields_, reciprocal_;
};

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

  ARRCOMP_METHOD SymbolFields fields_of(U32 symbol) const {
    if constexpr (gathers_pairs) {
      U32 fields, reciprocal;
      gather_pair(pairs, symbol, fields, reciprocal);
      return {fields, reciprocal};
    } else {
      return {lookup(divisions, symbol), lookup(reciprocals, symbol)};
    }
  }

  ARRCOMP_METHOD void step(const SymbolFields& symbol, U32& x, uint16_t*& words) const {
    const Mask full = symbol.is_full(x);
    words = append(words, x, full);
    x = select(full, x >> 16, x);
    push(symbol, x);
  }

  // Where no state has given a word away yet: false, with nothing done, where one would have to, now or once the lowest
  // state is added to all.
  ARRCOMP_METHOD bool step_dry(const SymbolFields& symbol, U32& x) const {
    if (any(symbol.is_full(x))) return false;
    U32 next = x;
    push(symbol, next);
    if (any(ge(next, splat<U32>(0u - lowest_state)))) return false;
    x = next;
    return true;
  }

 private:
  // Of a state that has room.
  ARRCOMP_METHOD void push(const SymbolFields& symbol, U32& x) const {
    const U32 quotient = symbol.quotient(x);
    x = (quotient << precision) + symbol.slot(slots, x, quotient);
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

ARRCOMP_INLINE U32 symbol_of(U32 value, uint32_t escape) { return min(value, splat<U32>(escape)); }
ARRCOMP_INLINE U32 symbol_of(U64 value, uint32_t escape) { return lo(min(value, splat<U64>(escape))); }

// The inverse of decode_row. Words are appended in the opposite order.
template <class Word>
ARRCOMP_INLINE void encode_row(const SymbolEncoder& encoder, Word value, U32& states, uint16_t*& words) {
  const U32 symbol = symbol_of(value, encoder.escape);
  const Mask escaped = eq(symbol, splat<U32>(encoder.escape));
  if (any(escaped)) words = append_rest(words, value - splat<Word>(encoder.escape), escaped);
  encoder.step(encoder.fields_of(symbol), states, words);
}

// The same before any state has given a word away; false where one would have to.
template <class Word>
ARRCOMP_INLINE bool encode_dry_row(const SymbolEncoder& encoder, Word value, U32& states, uint16_t*& words) {
  const U32 symbol = symbol_of(value, encoder.escape);
  if (!encoder.step_dry(encoder.fields_of(symbol), states)) return false;
  const Mask escaped = eq(symbol, splat<U32>(encoder.escape));
  if (any(escaped)) words = append_rest(words, value - splat<Word>(encoder.escape), escaped);
  return true;
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
    SymbolFields symbols[at_once];
    ARRCOMP_UNROLL for (int i = 0; i < at_once; ++i) symbols[i] = encoder.fields_of(values[end - 1 - i]);
    ARRCOMP_UNROLL for (const SymbolFields& symbol : symbols) encoder.step(symbol, states, words);
  }
}

}  // namespace arrcomp::ARRCOMP_ISA
