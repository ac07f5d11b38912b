// The writer's side of classes: whether a chunk's words may gain by them, and their table. A reader needs none of this.
#pragma once
#include "codecs/grouped/choices.h"
#include "codecs/grouped/classes.h"
#include "codecs/grouped/logarithms.h"

namespace arrcomp::ARRCOMP_ISA {

constexpr uint32_t no_classes = ~0u;  // bits, where there is no table
constexpr uint32_t class_head_bits = 32;
constexpr int sampled_for_classes = 4;  // a row of the sample in so many

// How many bits below their highest one classes can tell of words of so many bits: 64 are enough for all.
ARRCOMP_INLINE int told_of(int width) {
  return width <= 6 ? 5 : width <= 7 ? 4 : width <= 10 ? 3 : width <= 17 ? 2 : 1;
}

// Counts of classes, a row of lanes after the other.
class ClassCounts {
 public:
  ARRCOMP_METHOD explicit ClassCounts(uint32_t* counts) : counts_(counts) {}

  ARRCOMP_METHOD void clear() {
    sync();  // what was there before has been read
    for (int i = 0; i < class_rows; ++i) store(counts_ + i * lanes_per_row, splat<U32>(0));
    sync();
  }

  ARRCOMP_METHOD void add(U32 words, int told) { add_ones(counts_, WordClass(words, told).symbol, mask(~0u)); }

  ARRCOMP_METHOD U32 row(int i) const { return load(counts_ + i * lanes_per_row); }

  // Up to the last that there are.
  ARRCOMP_METHOD int classes() const {
    int n = 0;
    for (int i = 0; i < class_rows; ++i) {
      const int own = bit_length(bits(ne(row(i), splat<U32>(0))));
      if (own > 0) n = i * lanes_per_row + own;
    }
    return n;
  }

  // How many there are.
  ARRCOMP_METHOD int different() const {
    int n = 0;
    for (int i = 0; i < class_rows; ++i) n += count(ne(row(i), splat<U32>(0)));
    return n;
  }

  // The bits of all words by classes with these frequencies, of so many; no_classes where one has none.
  template <class FrequencyOf>
  ARRCOMP_METHOD uint32_t bits_by(int told, uint32_t all, FrequencyOf frequency_of_row) const {
    const U32 whole = log2_256(splat<U32>(all));
    U32 bits_256 = splat<U32>(0);
    uint32_t below = 0;
    for (int i = 0; i < class_rows; ++i) {
      const U32 own = row(i), frequency = frequency_of_row(i);
      const Mask are = ne(own, splat<U32>(0));
      if (any(are & eq(frequency, splat<U32>(0)))) return no_classes;
      bits_256 = bits_256 + select(are, own * (whole - log2_256(frequency)), splat<U32>(0));
      below += sum(own * bits_below(lane_numbers() + splat<U32>(static_cast<uint32_t>(i * lanes_per_row)), told));
    }
    return sum(bits_256) / 256 + below;
  }

 private:
  uint32_t* counts_;
};

// What a sample's words take by classes: their entropy, what that lacks on average as there are few of them (G. Miller, Note
// on the bias of information estimates, 1955), and the bits below. Of a row.
template <class Word>
ARRCOMP_CALLED uint32_t bits_of_sampled_classes(ClassMemory* memory, Sample<Word> sample, int shift, int told) {
  ClassCounts counts(memory->counts);
  counts.clear();
  const int rows = (sample.count + sampled_for_classes - 1) / sampled_for_classes;
  for (int s = 0; s < sample.count; s += sampled_for_classes) counts.add(lowest(sample.at(s) >> shift), told);
  sync();
  const uint32_t bits = counts.bits_by(told, static_cast<uint32_t>(rows * lanes_per_row),
                                       [&](int i) ARRCOMP_LAMBDA { return counts.row(i); });
  return (bits + static_cast<uint32_t>(counts.different() * 72 / 100)) / static_cast<uint32_t>(rows);
}

// The code of the frequency that is nearest.
ARRCOMP_INLINE U32 nearest_code(U32 frequency) {
  const U32 length = max(bit_length(frequency), splat<U32>(4)), shift = length - splat<U32>(3);
  const U32 rounded = (srlv(frequency, shift - splat<U32>(1)) + splat<U32>(1)) >> 1;
  return select(lt(frequency, splat<U32>(8)), frequency, (shift << 2) + rounded);
}

// Makes the table of the counted classes. All have a frequency up to the last one, so that other chunks may use it.
// `reciprocals`: of frequencies.
ARRCOMP_INLINE void make_own_table(ClassMemory* memory, const uint32_t* reciprocals, uint32_t words) {
  const ClassCounts counts(memory->counts);
  const int classes = counts.classes();
  U32 codes[class_rows], frequencies[class_rows];
  for (uint32_t slots = slot_count;;) {
    const uint32_t scale = static_cast<uint32_t>((uint64_t{slots} << 20) / words);
    uint32_t all = 0;
    for (int i = 0; i < class_rows; ++i) {
      const U32 exact = counts.row(i) * splat<U32>(scale) + splat<U32>(1u << 19);
      const Mask are = mask(low_mask(lanes_of_row(classes, i)));
      codes[i] = select(are, nearest_code(max(exact >> 20, splat<U32>(1))), splat<U32>(0));
      frequencies[i] = frequency_of(codes[i]);
      all += sum(frequencies[i]);
    }
    if (all <= slot_count) break;
    slots -= all - slot_count;
  }
  ClassTable& own = memory->own;
  lay_out_classes(own.entries, frequencies);
  for (int i = 0; i < symbol_count; i += lanes_per_row) {
    store(memory->codes + i, codes[i / lanes_per_row]);
    store(own.reciprocals + i, gather(reciprocals, load(own.entries + i) & splat<U32>(0xffff)));
  }
  if (leader()) memory->classes = classes;
  sync();
}

// Counts the classes of `rows` rows, word_of(row), and chooses their table: that of a chunk behind, if there is one, or an
// own one. Returns the bits that it takes with the words.
template <class WordOf>
ARRCOMP_INLINE uint32_t choose_class_table(ClassMemory* memory, const uint32_t* reciprocals, int rows, int told,
                                           bool has_shared, WordOf word_of) {
  ClassCounts counts(memory->counts);
  counts.clear();
  for (int r = 0; r < rows; ++r) counts.add(word_of(r), told);
  sync();
  make_own_table(memory, reciprocals, static_cast<uint32_t>(rows * lanes_per_row));
  const auto frequencies = [](const ClassTable& table) ARRCOMP_LAMBDA {
    const uint32_t* const entries = table.entries;
    return [entries](int i) ARRCOMP_LAMBDA { return load(entries + i * lanes_per_row) & splat<U32>(0xffff); };
  };
  uint32_t best =
      counts.bits_by(told, slot_count, frequencies(memory->own)) + 8 * FrequencyCodes::bytes(memory->classes);
  uint32_t by_shared = no_classes;
  if (has_shared && memory->told_by_shared == told)
    by_shared = counts.bits_by(told, slot_count, frequencies(memory->shared));
  sync();  // these have been read
  if (leader()) {
    memory->told = told;
    memory->is_own = best < by_shared;
  }
  sync();
  return (best < by_shared ? best : by_shared) + class_head_bits;
}

// Makes the own table that of the chunks before.
ARRCOMP_INLINE void share_classes(ClassMemory* memory) {
  sync();  // the shared one has been read
  ClassTable &shared = memory->shared, &own = memory->own;
  for (int i = 0; i < symbol_count; i += lanes_per_row) {
    store(shared.entries + i, load(own.entries + i));
    store(shared.reciprocals + i, load(own.reciprocals + i));
  }
  if (leader()) memory->told_by_shared = memory->told;
  sync();
}

}  // namespace arrcomp::ARRCOMP_ISA
