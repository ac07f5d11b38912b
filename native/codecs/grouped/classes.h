// Classes of words: each stands for the words of one length that share their highest bits, and a state holds the bits below
// as they are. A chunk has its own table of them, so that numbers of any distribution take about their entropy.
// FORMAT.md, section 4.5.
#pragma once
#include "codecs/grouped/class_memory.h"
#include "codecs/grouped/rans.h"
#include "codecs/packing.h"

namespace arrcomp::ARRCOMP_ISA {

constexpr int class_rows = symbol_count / lanes_per_row;

// Whether a reader's table tells the class of each slot, where looking up is one load a lane however long the table is; else
// a class is searched for by its first slot.
constexpr bool has_classes_of_slots = keeps_rows && !wide_permutations;
constexpr int class_table_size = has_classes_of_slots ? slot_count + lanes_per_row : symbol_count;

// 2^n, n per lane, 0 to 31.
ARRCOMP_INLINE U32 power_of(U32 n) { return srlv(splat<U32>(1u << 31), splat<U32>(31) - n); }

// How many bits the words of a class have below those that it tells.
ARRCOMP_INLINE U32 bits_below(U32 symbol, int told) { return max(symbol >> told, splat<U32>(1)) - splat<U32>(1); }

// A word's class, which tells `told` bits below its highest one.
struct WordClass {
  U32 symbol, below;  // and how many bits it does not tell

  ARRCOMP_METHOD WordClass(U32 word, int told)
      : below(bit_length(word | splat<U32>(1u << told)) - splat<U32>(static_cast<uint32_t>(told) + 1)) {
    symbol = (below << told) + srlv(word, below);
  }
};

// Codes of frequencies have two bits below the highest one.
ARRCOMP_INLINE U32 frequency_of(U32 code) {
  const U32 told = code & splat<U32>(3);
  const U32 large = (told + splat<U32>(4)) * power_of(max(code >> 2, splat<U32>(1)) - splat<U32>(1));
  return select(lt(code, splat<U32>(8)), code, large);
}

// The frequencies of a chunk's classes: their codes in its side data, and how many they are. None: those of the chunk that
// was read before.
struct FrequencyCodes {
  const uint8_t* begin;
  int count;

  ARRCOMP_METHOD static uint32_t bytes(int count) {
    const int rows = (count + lanes_per_row - 1) / lanes_per_row;
    return packed_bytes(static_cast<uint32_t>(rows * bits_of_frequency_code));
  }

  // What they stand for, 0 from the last one on.
  ARRCOMP_METHOD void read(U32 (&frequencies)[class_rows]) const {
    const uint8_t* const p = in_device_memory(begin);
    BitReader bits(p, p + bytes(count));
    for (int i = 0; i < class_rows; ++i) {
      frequencies[i] = splat<U32>(0);
      const int n = lanes_of_row(count, i);
      if (n > 0)
        frequencies[i] =
            select(mask(low_mask(n)), frequency_of(bits.get(bits_of_frequency_code, U32{})), splat<U32>(0));
    }
  }
};

// Lays slots out: those of one class after those of the other, each with its frequency | its first slot << 16. The most
// frequent class gets what is left of them. False where the frequencies are none, or more than there are slots.
ARRCOMP_INLINE bool lay_out_classes(uint32_t* table, const U32 (&frequencies)[class_rows]) {
  U32 most = splat<U32>(0);
  uint32_t all = 0;
  for (const U32& own : frequencies) {
    most = max(most, own);
    all += sum(own);
  }
  if (all == 0 || all > slot_count) return false;
  const U32 largest = splat<U32>(max_all(most)), rest = splat<U32>(slot_count - all);
  bool is_given = false;
  U32 start = splat<U32>(0);
  sync();  // what was there before has been read
  for (int i = 0; i < class_rows; ++i) {
    const uint32_t like_it = bits(eq(frequencies[i], largest));
    U32 own = frequencies[i];
    if (!is_given) own = own + select(mask(like_it & (0u - like_it)), rest, splat<U32>(0));
    is_given = is_given || like_it != 0;
    const U32 ends = start + prefix_sum(own);
    store(table + i * lanes_per_row, own | (ends - own) << 16);
    start = broadcast_last(ends);
  }
  sync();
  return true;
}

// What a reader's table tells of a slot: its class, the frequency of this, and the class's first slot.
struct SlotClass {
  U32 symbol, frequency, first;

  ARRCOMP_METHOD static uint32_t packed(uint32_t symbol, uint32_t frequency, uint32_t first) {
    return symbol | frequency << 6 | first << 18;
  }
  ARRCOMP_METHOD static SlotClass unpacked(U32 x) {
    return {x & splat<U32>(symbol_count - 1), x >> 6 & splat<U32>(2 * slot_count - 1), x >> 18};
  }
};

// The classes of all slots, of a table as lay_out_classes makes it. (A row that is longer than a class is written over.)
ARRCOMP_INLINE void write_classes_of_slots(const uint32_t* classes, uint32_t* slots) {
  for (uint32_t symbol = 0; symbol < symbol_count; ++symbol) {
    const uint32_t frequency = classes[symbol] & 0xffff, first = classes[symbol] >> 16;
    const U32 own = splat<U32>(SlotClass::packed(symbol, frequency, first));
    for (uint32_t slot = first; slot < first + frequency; slot += lanes_per_row) store(slots + slot, own);
  }
}

// The next word of each lane. (The caller brings words near before each row.)
class ClassDecoder {
 public:
  ARRCOMP_METHOD ClassDecoder() {}
  // The table is as read_class_table makes it.
  ARRCOMP_METHOD ClassDecoder(const uint32_t* classes, int told)
      : entries_(table(classes)), slots_(classes), told_(told) {}

  ARRCOMP_METHOD U32 decode_row(U32& x, WordSource& words, uint32_t lowest) const {
    const U32 symbol = next_symbol(x);
    words.take(x, lt(x, splat<U32>(lowest)));
    const U32 below = bits_below(symbol, told_), most = splat<U32>(most_bits_at_once);
    U32 low = next_bits(x, min(below, most));
    words.take(x, lt(x, splat<U32>(lowest)));
    if (any(lt(most, below))) {
      low = low | next_bits(x, max(below, most) - most) << most_bits_at_once;
      words.take(x, lt(x, splat<U32>(lowest)));
    }
    return (symbol - (below << told_)) * power_of(below) | low;
  }

 private:
  ARRCOMP_METHOD U32 next_symbol(U32& x) const {
    const U32 slot = x & splat<U32>(slot_count - 1);
    const SlotClass own = has_classes_of_slots ? SlotClass::unpacked(gather(slots_, slot)) : find(slot);
    x = own.frequency * (x >> precision) + slot - own.first;
    return own.symbol;
  }

  ARRCOMP_METHOD SlotClass find(U32 slot) const {
    const U32 last = slot << 16 | splat<U32>(0xffff);
    U32 symbol = splat<U32>(0);
    ARRCOMP_UNROLL for (uint32_t half = symbol_count / 2; half > 0; half /= 2) {
      const U32 upper = symbol | splat<U32>(half);
      symbol = select(lt(last, lookup(entries_, upper)), symbol, upper);
    }
    const U32 entry = lookup(entries_, symbol);
    return {symbol, entry & splat<U32>(0xffff), entry >> 16};
  }

  ARRCOMP_METHOD static U32 next_bits(U32& x, U32 n) {
    const U32 low = x & (power_of(n) - splat<U32>(1));
    x = srlv(x, n);
    return low;
  }

  Table64 entries_;
  const uint32_t* slots_;
  int told_;
};

// The coder's states, and the words that they take.
struct FedStates {
  U32 states;
  WordSource words;
};

// Decodes n rows into memory, of which `fed` are left in which states take words.
template <class Word>
ARRCOMP_APART FedStates decode_class_rows(const uint32_t* table, int told, FedStates fed_states, int n, int fed,
                                          typename Word::scalar* rows) {
  const ClassDecoder decoder(table, told);
  ARRCOMP_ROLLED for (int j = 0; j < n; ++j, rows += lanes_per_row) {
    if (j == fed) fed_states.states = fed_states.states - splat<U32>(lowest_state);
    fed_states.words.bring_near();
    Word word;
    widen_to(decoder.decode_row(fed_states.states, fed_states.words, j < fed ? lowest_state : 0), word);
    store(rows, word);
  }
  return fed_states;
}

// Makes the table of a chunk, of class_table_size; false where it is corrupt.
ARRCOMP_CALLED bool read_class_table(uint32_t* table, FrequencyCodes codes) {
  U32 frequencies[class_rows];
  codes.read(frequencies);
  if constexpr (has_classes_of_slots) {
    uint32_t classes[symbol_count];
    if (!lay_out_classes(classes, frequencies)) return false;
    write_classes_of_slots(classes, table);
    return true;
  } else {
    return lay_out_classes(table, frequencies);
  }
}

// The inverse of ClassDecoder.
class ClassEncoder {
 public:
  ARRCOMP_METHOD ClassEncoder(const ClassTable& classes, int told)
      : entries_(table(classes.entries)), reciprocals_(table(classes.reciprocals)), told_(told) {}

  ARRCOMP_METHOD void encode_row(U32 word, U32& x, uint16_t*& words) const {
    const auto make_room = [&](Mask full) ARRCOMP_LAMBDA {
      words = append(words, x, full);
      x = select(full, x >> 16, x);
      return true;
    };
    push(word, x, make_room);
  }

  // Where no state has given a word away yet: false, with nothing done, where one would have to, now or once the lowest
  // state is added to all.
  ARRCOMP_METHOD bool encode_dry_row(U32 word, U32& x) const {
    U32 own = x;
    if (!push(word, own, [](Mask full) ARRCOMP_LAMBDA { return !any(full); })) return false;
    if (any(ge(own, splat<U32>(0u - lowest_state)))) return false;
    x = own;
    return true;
  }

 private:
  // make_room(full) is asked for the states that have no room; false ends it.
  template <class MakeRoom>
  ARRCOMP_METHOD bool push(U32 word, U32& x, MakeRoom make_room) const {
    const WordClass own(word, told_);
    const U32 most = splat<U32>(most_bits_at_once);
    if (any(lt(most, own.below))) {
      const U32 n = max(own.below, most) - most;
      if (!push_bits(word >> most_bits_at_once & (power_of(n) - splat<U32>(1)), n, x, make_room)) return false;
    }
    const U32 n = min(own.below, most);
    if (!push_bits(word & (power_of(n) - splat<U32>(1)), n, x, make_room)) return false;
    return push_symbol(own.symbol, x, make_room);
  }

  template <class MakeRoom>
  ARRCOMP_METHOD static bool push_bits(U32 low, U32 n, U32& x, MakeRoom make_room) {
    if (!make_room(ne(srlv(x >> 1, splat<U32>(31) - n), splat<U32>(0)))) return false;
    x = x * power_of(n) | low;
    return true;
  }

  template <class MakeRoom>
  ARRCOMP_METHOD bool push_symbol(U32 symbol, U32& x, MakeRoom make_room) const {
    const U32 entry = lookup(entries_, symbol), frequency = entry & splat<U32>(0xffff);
    if (!make_room(ge(x, frequency << (32 - precision)))) return false;
    // The reciprocal is rounded down: the quotient may be one too low.
    const U32 shift = max(bit_length(frequency - splat<U32>(1)), splat<U32>(1)) - splat<U32>(1);
    const U32 quotient = srlv(mulhi(x, lookup(reciprocals_, symbol)), shift), rest = x - quotient * frequency;
    const Mask is_low = ge(rest, frequency);
    const U32 exact = quotient + select(is_low, splat<U32>(1), splat<U32>(0));
    const U32 rank = rest - select(is_low, frequency, splat<U32>(0));
    x = (exact << precision) + rank + (entry >> 16);
    return true;
  }

  Table64 entries_, reciprocals_;
  int told_;
};

}  // namespace arrcomp::ARRCOMP_ISA
