// The order of a dictionary's entries: that of their keys, or the more frequent ones first, so that small indices are
// frequent. FORMAT.md, section 3.6.
#pragma once
#include <bit>

#include "codecs/element_types.h"
#include "codecs/grouped/dictionary_memory.h"
#include "codecs/grouped/group_limits.h"
#include "codecs/grouped/logarithms.h"
#include "codecs/grouped/rans.h"
#include "codecs/grouped/sampled_values.h"
#include "codecs/packing.h"
#include "codecs/transform.h"

namespace arrcomp::ARRCOMP_ISA {

// Calls visit(row, bits) for rows of elements, until it is false; returns whether it never was. Lanes beyond the last element
// repeat it.
template <class T, class Visit>
ARRCOMP_METHOD bool visit_rows(const ElementRange& elements, Visit visit) {
  for (int r = 0; r * lanes_per_row < elements.count; ++r) {
    const auto first = static_cast<uint64_t>(r * lanes_per_row);
    if (!visit(r, load_elements<T>(elements.begin, first, lanes_of_row(elements.count, r)))) return false;
  }
  return true;
}

// How the places of a chunk's elements in a dictionary are coded.
struct PlacesCode {
  const EncodeTable* table;
  int shift;
  uint32_t base;
  bool plain;
  int bits;  // of a word
};

// The entries of a dictionary with keys in their order, by how often a chunk has them. Of bytes: all that there are.
template <class T>
class EntryRanks {
  using Memory = DictionaryMemory<typename T::Word::scalar>;

 public:
  static constexpr int all_bytes = 256;

  ARRCOMP_METHOD explicit EntryRanks(Memory& memory)
      : memory_(memory), entries_(T::width == 8 ? all_bytes : memory.entries) {}

  ARRCOMP_PART void clear() {
    sync();  // what was there before has been read
    for (int i = 0; i < entries_; i += lanes_per_row) store(memory_.counts + i, splat<U32>(0));
    sync();
  }

  // Counts `indices`, which are those of elements.
  ARRCOMP_PART void add(const typename T::storage* indices, int count) {
    for (int i = 0; i < count; i += lanes_per_row) {
      const int n = lanes_of_row(count, i / lanes_per_row);
      add_ones(memory_.counts, lowest(load_row(indices + i, n)), mask(low_mask(n)));
    }
    sync();
  }

  // Counts the low bytes of a sample, of every second row. Returns how many they are.
  template <class Word>
  ARRCOMP_PART int add(const SampledValues<Word>& sample) {
    constexpr int step = 2;
    for (int s = 0; s < sample.count; s += step)
      add_ones(memory_.counts, lowest(sample.at(s)) & splat<U32>(all_bytes - 1), mask(~0u));
    sync();
    return (sample.count + step - 1) / step * lanes_per_row;
  }

  // How many have been counted at all.
  ARRCOMP_PART int different() const {
    U32 own = splat<U32>(0);
    for (int i = 0; i < entries_; i += lanes_per_row) own = own + min(load(memory_.counts + i), splat<U32>(1));
    return static_cast<int>(sum(own));
  }

  // The entropy of so many indices, in bits: about what they take where the more frequent ones come first.
  ARRCOMP_PART uint32_t entropy(int count) const {
    const U32 all = log2_256(splat<U32>(static_cast<uint32_t>(count)));
    U32 bits_256 = splat<U32>(0);
    for (int i = 0; i < entries_; i += lanes_per_row) {
      const int n = lanes_of_row(entries_, i / lanes_per_row);
      const U32 own = load_row(memory_.counts + i, n);
      bits_256 = bits_256 + select(mask(low_mask(n)), own * (all - log2_256(own)), splat<U32>(0));
    }
    return sum(bits_256) / 256;
  }

  // The bits that an entropy coder takes for the places as they are, of `count` elements with these frequencies.
  ARRCOMP_PART uint32_t coded(const PlacesCode& code, int count) const {
    const EncodeTable& table = *code.table;
    const U32 whole = splat<U32>(uint32_t{precision << 8}), of_rest = splat<U32>(uint32_t{16 << 8});
    U32 bits_256 = splat<U32>(0), all = bits_256;
    for (int i = 0; i < entries_; i += lanes_per_row) {
      const int n = lanes_of_row(entries_, i / lanes_per_row);
      const U32 place = lane_numbers() + splat<U32>(static_cast<uint32_t>(i) - code.base);
      const U32 symbol = symbol_of(fold(place, code.plain, code.bits) >> code.shift, table.escape);
      const U32 frequency = gather(table.division, symbol) & splat<U32>(slot_count - 1);
      const U32 rest = select(eq(symbol, splat<U32>(table.escape)), of_rest, splat<U32>(0));
      const U32 own = select(mask(low_mask(n)), load_row(memory_.counts + i, n), splat<U32>(0));
      bits_256 = bits_256 + own * (whole - log2_256(frequency) + rest);
      all = all + own;
    }
    const uint64_t bits_of_count = uint64_t{sum(bits_256)} * static_cast<uint32_t>(count) / sum(all);
    return static_cast<uint32_t>(bits_of_count / 256) + static_cast<uint32_t>(count * code.shift);
  }

  // Finds the rank of each entry, and the entry of each rank. Entries whose counts are near are in the order of their keys.
  ARRCOMP_PART void sort() {
    uint32_t* end = memory_.by_rank;
    for (int level = most_level; level >= 0; --level)
      for (int i = 0; i < entries_; i += lanes_per_row) {
        const int n = lanes_of_row(entries_, i / lanes_per_row);
        const Mask own =
            eq(level_of(load_row(memory_.counts + i, n)), splat<U32>(static_cast<uint32_t>(level))) & mask(low_mask(n));
        if (!any(own)) continue;
        const U32 first = splat<U32>(static_cast<uint32_t>(end - memory_.by_rank) - 1);
        const U32 rank = first + prefix_sum(select(own, splat<U32>(1), splat<U32>(0)));
        store(memory_.ranks + i, select(own, rank, load(memory_.ranks + i)));
        end = compress(end, lane_numbers() + splat<U32>(static_cast<uint32_t>(i)), own);
      }
    sync();
  }

 private:
  // Of a chunk's elements, or of a group's bytes.
  static constexpr int most_level = 2 * std::bit_width(uint32_t{chunk_size} * (T::width == 8 ? most_chunks : 1)) + 1;

  // Twice the logarithm of a count, rounded down.
  ARRCOMP_METHOD static U32 level_of(U32 count) {
    const U32 x = count << 2 | splat<U32>(3), exponent = bit_length(x) - splat<U32>(2);
    return exponent + exponent + (srlv(x, exponent) & splat<U32>(1));
  }

  Memory& memory_;
  int entries_;
};

// Counts how often a chunk's `indices` have each entry; returns their entropy.
template <class T>
ARRCOMP_CALLED uint32_t entropy_of_indices(DictionaryMemory<typename T::Word::scalar>* memory,
                                           const typename T::storage* indices, int count) {
  EntryRanks<T> ranks(*memory);
  ranks.clear();
  ranks.add(indices, count);
  return ranks.entropy(count);
}

// How many bits 16 indices of bytes take: the sample's entropy, and what that lacks on average as there are few of it
// (G. Miller, Note on the bias of information estimates, 1955); or a width where indices are packed.
template <class T>
ARRCOMP_CALLED int bits_of_bytes(DictionaryMemory<typename T::Word::scalar>* memory,
                                 SampledValues<typename T::Word> sample, bool packed) {
  EntryRanks<T> bytes(*memory);
  bytes.clear();
  const int count = bytes.add(sample), different = bytes.different();
  if (packed) return 16 * bit_length(static_cast<uint32_t>(different - 1));
  const int lacking = (different - 1) * 72 / 100;
  return 16 * (static_cast<int>(bytes.entropy(count)) + lacking) / count + 1;
}

// EntryRanks::coded, of what was counted.
template <class T>
ARRCOMP_CALLED uint32_t bits_of_places(DictionaryMemory<typename T::Word::scalar>* memory, PlacesCode code, int count) {
  return EntryRanks<T>(*memory).coded(code, count);
}

// Ranks the entries as they were counted.
template <class T>
ARRCOMP_CALLED void rank_entries(DictionaryMemory<typename T::Word::scalar>* memory) {
  EntryRanks<T>(*memory).sort();
}

}  // namespace arrcomp::ARRCOMP_ISA
