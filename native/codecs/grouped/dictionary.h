// Chunks of few different elements: these are listed in their order, as a dictionary, and each element becomes its index
// there. FORMAT.md, section 3.6.
#pragma once
#include "codecs/grouped/byte_dictionary.h"
#include "codecs/grouped/choices.h"
#include "codecs/grouped/dictionary_entries.h"
#include "codecs/grouped/dictionary_memory.h"

namespace arrcomp::ARRCOMP_ISA {

// Whether more than half of the values occur but once in the sample, as one of its rows tells: few may repeat often. Those
// that are very common do not count.
template <class Word>
ARRCOMP_PART bool are_single(const SampledValues<Word>& sample) {
  const auto* const row = sample.rows + sample.count / 2 * sample.distance;
  int single = 0, common = 0;
  for (int lane = 0; lane < lanes_per_row; ++lane) {
    const Word x = splat<Word>(row[lane]);
    U32 found = splat<U32>(0);
    for (int s = 0; s < sample.count; ++s) found = found + select(eq(sample.at(s), x), splat<U32>(1), splat<U32>(0));
    const auto own = static_cast<int>(sum(found));
    if (own == 1) ++single;
    if (own > sample.count * lanes_per_row / 8) ++common;
  }
  return 2 * single > lanes_per_row - common;
}

// Values that are like the one before, in turn with those like the one three rows before: smooth ones are like their
// neighbours, those of three kinds in turn (the colours of pixels) are like others of their kind.
template <class Word, class OneIfAlike>
ARRCOMP_PART uint32_t count_few_alike(const SampledValues<Word>& sample, int step, OneIfAlike one_if_alike) {
  constexpr int distance = 3;
  U32 alike = splat<U32>(0);
  for (int s = distance; s < sample.count; s += 2 * step) {
    const Word x = sample.at(s);
    alike = alike + one_if_alike(x, sample.at(s - distance));
    if (s + step >= sample.count) break;
    const Word y = sample.at(s + step);
    alike = alike + one_if_alike(y, sample.before(s + step, y));
  }
  return sum(alike);
}

// How many bits 16 indices take if the sample's values are as few as they seem to be, or 0 where they are not few: about
// their collision entropy (A. Renyi, On measures of entropy and information, 1961). Zeros do not count.
template <class T>
ARRCOMP_PART int bits_of_indices(const SampledValues<typename T::Word>& sample, bool fast) {
  using Word = typename T::Word;
  constexpr int most_bits = 11, most_distance = 8;
  const Word zero = splat<Word>(0);
  const auto one_if_alike = [&](Word x, Word other) ARRCOMP_LAMBDA {
    return select(eq(x, other) & ne(x, zero), splat<U32>(1), splat<U32>(0));
  };
  const int step = fast || T::width == 16 ? 2 : 1;
  uint32_t alike = count_few_alike(sample, step, one_if_alike), pairs = static_cast<uint32_t>(sample.count / step);
  if (alike == 0) return 0;
  for (int distance = 1; distance <= most_distance && distance < sample.count; ++distance) {
    U32 own = splat<U32>(0);
    for (int s = distance; s < sample.count; ++s) own = own + one_if_alike(sample.at(s), sample.at(s - distance));
    alike += sum(own);
    pairs += static_cast<uint32_t>(sample.count - distance);
  }
  const int bits = bit_length(pairs * lanes_per_row / alike);
  return bits <= most_bits && !are_single(sample) ? 16 * bits : 0;
}

template <class T>
class Dictionary {
  using Word = typename T::Word;
  using Scalar = typename Word::scalar;
  using Memory = DictionaryMemory<Scalar>;

 public:
  ARRCOMP_METHOD Dictionary(Memory& memory, const Element& element)
      : memory_(memory),
        order_(element.is_float(), T::width),
        is_ranked_(memory.is_ranked),
        first_key_(element.is_float() || element.is_signed ? Scalar{1} << (T::width - 1) : 0),
        entries_(memory.entries),
        rows_(rows_of(entries_)) {}

  ARRCOMP_METHOD int entries() const { return entries_; }

  // Whether all of these are entries.
  ARRCOMP_PART bool has(const ElementRange& elements) const {
    return each_row(elements, [&](int, Word key) ARRCOMP_LAMBDA {
      Mask found;
      find(key, found);
      return !any(~found);
    });
  }

  ARRCOMP_PART void clear() {
    sync();  // what was there before has been read
    for (int i = 0; i < Memory::most_places; i += lanes_per_row) store(memory_.keys + i, splat<Word>(~Scalar{0}));
    entries_ = 0;
    sync();
    make_tree();
  }

  // Adds those that are none yet; false where there are more than `most` then.
  ARRCOMP_PART bool add(const ElementRange& elements, int most) {
    recent_ = 0;
    const bool are_all = each_row(elements, [&](int, Word key) ARRCOMP_LAMBDA {
      Mask found;
      find(key, found);
      Mask absent = ~found;
      for (int i = 0; i < recent_ && any(absent); ++i) absent = absent & ne(key, splat<Word>(memory_.recent[i]));
      while (any(absent)) {
        if (entries_ + recent_ >= most) return false;
        const Scalar next = value_of_first(key, absent);
        absent = absent & ne(key, splat<Word>(next));
        if (leader()) memory_.recent[recent_] = next;
        sync();
        if (++recent_ == lanes_per_row) merge_recent();
      }
      return true;
    });
    if (are_all && recent_ > 0) merge_recent();
    return are_all;
  }

  // The entries of now are those of later, unless others that come are too many.
  ARRCOMP_METHOD void save() {
    for (int i = 0; i < entries_; i += lanes_per_row) store(memory_.kept + i, load(memory_.keys + i));
    kept_ = entries_;
  }
  ARRCOMP_METHOD void restore() {
    sync();  // the entries have been read
    for (int i = 0; i < entries_; i += lanes_per_row)
      store(memory_.keys + i, i < kept_ ? load(memory_.kept + i) : splat<Word>(~Scalar{0}));
    entries_ = kept_;
    sync();
    make_tree();
  }

  // Writes the indices of elements.
  ARRCOMP_PART void index(const ElementRange& elements, typename T::storage* out) const {
    each_row(elements, [&](int row, Word key) ARRCOMP_LAMBDA {
      Mask found;
      U32 place = find(key, found);
      if (is_ranked_) place = gather(memory_.ranks, place);
      Word index;
      widen_to(place, index);
      store(out + row * lanes_per_row, index);
      return true;
    });
    sync();
  }

  ARRCOMP_PART void write(typename T::storage* out) const {
    for (int i = 0; i < entries_; i += lanes_per_row) {
      const int n = lanes_of_row(entries_, i / lanes_per_row);
      const Word key =
          is_ranked_ ? gather_elements<Word>(memory_.keys, load_row(memory_.by_rank + i, n)) : load(memory_.keys + i);
      store_entries(out + i, bits_of_key(key), n);
    }
  }

 private:
  // Where numbers are aligned to 4 bytes alone.
  ARRCOMP_METHOD static void store_entries(typename T::storage* out, Word bits, int n) {
    if constexpr (T::width == 64) {
      auto* const words = reinterpret_cast<uint32_t*>(out);
      store_apart(words, 2, n, lowest(bits));
      store_apart(words + 1, 2, n, hi(bits));
    } else {
      store_row(out, bits, n);
    }
  }

  // Elements' bits as unsigned numbers in their order, and back.
  ARRCOMP_METHOD Word key_of(Word bits) const { return order_.order(bits) ^ splat<Word>(first_key_); }
  ARRCOMP_METHOD Word bits_of_key(Word key) const { return order_.order(key ^ splat<Word>(first_key_)); }

  // visit_rows with keys.
  template <class Visit>
  ARRCOMP_METHOD bool each_row(const ElementRange& elements, Visit visit) const {
    return visit_rows<T>(elements, [&](int row, Word bits) ARRCOMP_LAMBDA { return visit(row, key_of(bits)); });
  }

  // ---- the search tree: node i has the children 2i and 2i + 1, and rows begin at powers of two

  ARRCOMP_METHOD static int rows_of(int entries) { return bit_length(static_cast<uint32_t>(entries)); }

  // Key number i in order stands behind all that are smaller; 2^rows - 1 keys are in the tree, more than there are.
  ARRCOMP_PART void make_tree() {
    rows_ = rows_of(entries_);
    sync();  // what was there before has been read
    for (int row = 0; row < rows_; ++row) {
      const int nodes = 1 << row;
      for (int i = 0; i < nodes; i += lanes_per_row) {
        const U32 node = min(lane_numbers() + splat<U32>(static_cast<uint32_t>(i)), splat<U32>(nodes - 1u));
        const U32 place = (node + node + splat<U32>(1)) << (rows_ - 1 - row);
        const Word key = gather_elements<Word>(memory_.keys, place - splat<U32>(1));
        const int n = lanes_of_row(nodes, i / lanes_per_row);
        store_row(memory_.tree[0] + nodes + i, lowest(key), n);
        if constexpr (T::width == 64) store_row(memory_.tree[1] + nodes + i, hi(key), n);
      }
    }
    sync();
  }

  template <int row>
  ARRCOMP_METHOD static U32 half_of_node(const uint32_t* tree, U32 node) {
    constexpr int nodes = 1 << row, size = nodes < 16 ? 16 : nodes;
    if constexpr (nodes > 256)
      return gather(tree, node);
    else
      return lookup<size>(tree + (nodes < 16 ? 0 : nodes), node);
  }

  template <int row>
  ARRCOMP_METHOD Word key_of_node(U32 node) const {
    const U32 lower = half_of_node<row>(memory_.tree[0], node);
    if constexpr (T::width == 64)
      return join(lower, half_of_node<row>(memory_.tree[1], node));
    else
      return lower;
  }

  template <int row>
  ARRCOMP_METHOD void descend(Word key, U32& node, Mask& found) const {
    if constexpr (row < Memory::most_rows) {
      if (row >= rows_) return;
      const Word own = key_of_node<row>(node);
      found = found | eq(own, key);
      node = node + node + select(lt(own, key), splat<U32>(1), splat<U32>(0));
      descend<row + 1>(key, node, found);
    }
  }

  // The place of the first key that is not smaller, and whether it is this one.
  ARRCOMP_METHOD U32 find(Word key, Mask& found) const {
    U32 node = splat<U32>(1);
    found = mask(0);
    descend<0>(key, node, found);
    const U32 place = node - splat<U32>(1u << rows_);
    found = found & lt(place, splat<U32>(static_cast<uint32_t>(entries_)));
    return place;
  }

  // ---- keys that are not among the entries yet

  ARRCOMP_PART void merge_recent() {
    sort_recent();
    Mask found;
    store(memory_.places, find(load(memory_.recent), found) + lane_numbers());
    sync();
    for (int row = (entries_ + recent_ - 1) / lanes_per_row, before = recent_; row >= 0 && before > 0; --row) {
      const int behind = before;  // of those that are recent, in this row or one before it
      while (before > 0 && memory_.places[before - 1] >= static_cast<uint32_t>(row * lanes_per_row)) --before;
      merge_row(row, before, behind);
    }
    entries_ += recent_;
    recent_ = 0;
    make_tree();
  }

  // Those without a place come behind all others.
  ARRCOMP_PART void sort_recent() {
    const Mask valid = mask(low_mask(recent_));
    const Word key = select(valid, load(memory_.recent), splat<Word>(~Scalar{0}));
    U32 rank = select(valid, splat<U32>(0), lane_numbers());
    for (int i = 0; i < recent_; ++i)
      rank = rank + select(lt(splat<Word>(memory_.recent[i]), key) & valid, splat<U32>(1), splat<U32>(0));
    store(memory_.places, rank);
    sync();
    Word sorted = splat<Word>(~Scalar{0});
    for (int i = 0; i < recent_; ++i)
      sorted = select(eq(lane_numbers(), splat<U32>(memory_.places[i])), splat<Word>(memory_.recent[i]), sorted);
    sync();
    store(memory_.recent, sorted);
    sync();
  }

  // The row gets the recent keys from `first` to `end`; of those before them there are `first`.
  ARRCOMP_METHOD void merge_row(int row, int first, int end) {
    const U32 place = lane_numbers() + splat<U32>(static_cast<uint32_t>(row * lanes_per_row));
    U32 smaller = splat<U32>(static_cast<uint32_t>(first));
    for (int i = first; i < end; ++i)
      smaller = smaller + select(lt(splat<U32>(memory_.places[i]), place), splat<U32>(1), splat<U32>(0));
    Word merged = gather_elements<Word>(memory_.keys, place - smaller);
    for (int i = first; i < end; ++i)
      merged = select(eq(place, splat<U32>(memory_.places[i])), splat<Word>(memory_.recent[i]), merged);
    sync();
    store(memory_.keys + row * lanes_per_row, merged);
    sync();
  }

  Memory& memory_;
  FloatOrder<Word> order_;
  bool is_ranked_;
  Scalar first_key_;
  int entries_, rows_;
  int recent_ = 0, kept_ = 0;
};

template <class T>
using DictionaryOf = std::conditional_t<T::width == 8, ByteDictionary<T>, Dictionary<T>>;

// What a short chunk at the end has too many of, others may not.
template <class Memory>
ARRCOMP_METHOD void give_dictionary_up(Memory& memory, int elements) {
  sync();  // what was there before has been read
  if (leader()) {
    memory.entries = 0;
    memory.is_hopeless = elements > chunk_size / 2;
  }
  sync();
}

// As that of the chunks before.
template <class Memory>
ARRCOMP_METHOD void keep_dictionary(Memory& memory, int entries, bool is_of_group) {
  if (leader()) {
    memory.entries = entries;
    memory.is_of_group = is_of_group;
  }
  sync();
}

enum class DictionaryFound : uint8_t { none, same, other };

// Makes a dictionary of a chunk's elements, and of others of its group, which may be as few, unless the one in memory has
// all of the chunk's. It has no more entries than pay: a new one is not looked for where none do.
template <class T>
ARRCOMP_CALLED DictionaryFound find_dictionary(DictionaryMemory<typename T::Word::scalar>* memory, Element element,
                                               ElementRange chunk, ElementRange others, uint32_t entries_that_pay) {
  constexpr auto most_in_memory = static_cast<uint32_t>(DictionaryMemory<typename T::Word::scalar>::most);
  const auto most = static_cast<int>(entries_that_pay < most_in_memory ? entries_that_pay : most_in_memory);
  DictionaryOf<T> dictionary(*memory, element);
  if (dictionary.entries() > 0 && (memory->is_of_group || dictionary.has(chunk))) return DictionaryFound::same;
  if (most == 0) return DictionaryFound::none;
  dictionary.clear();
  if (!dictionary.add(chunk, most)) {
    give_dictionary_up(*memory, chunk.count);
    return DictionaryFound::none;
  }
  const int twice = 2 * dictionary.entries();
  dictionary.save();
  const bool is_of_group = dictionary.add(others, twice < most ? twice : most);
  if (!is_of_group) dictionary.restore();
  keep_dictionary(*memory, dictionary.entries(), is_of_group);
  return DictionaryFound::other;
}

// Writes the indices of a chunk's elements, with entries in the order of their ranks or of their keys.
template <class T>
ARRCOMP_CALLED void index_elements(DictionaryMemory<typename T::Word::scalar>* memory, Element element,
                                   ElementRange chunk, bool ranked, typename T::storage* out) {
  sync();  // the order before has been read
  if (leader()) memory->is_ranked = ranked;
  sync();
  DictionaryOf<T>(*memory, element).index(chunk, out);
}

// Writes how many entries a chunk's dictionary has, and these; returns what is behind them. Without `own` they are those
// of the chunk after it.
template <class T>
ARRCOMP_CALLED uint8_t* write_dictionary(uint8_t* out, DictionaryMemory<typename T::Word::scalar>* memory,
                                         Element element, bool own) {
  const int entries = own ? memory->entries : 0;
  out = write_number(out, static_cast<uint32_t>(entries));
  if (entries == 0) return out;
  uint8_t* const end = out + DictionaryEntries::bytes(entries, T::width);
  write_number(end - 4, uint32_t{0});
  sync();
  DictionaryOf<T>(*memory, element).write(reinterpret_cast<typename T::storage*>(out));
  return end;
}

}  // namespace arrcomp::ARRCOMP_ISA
