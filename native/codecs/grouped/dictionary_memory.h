// The memory in which a dictionary of elements is made (codecs/grouped/dictionary.h).
#pragma once
#include "stream/constants.h"

namespace arrcomp {

// Elements of an array, or of a copy of some.
struct ElementRange {
  const void* begin;
  int count;
};

template <class Scalar>
struct DictionaryMemory {
  static constexpr int most_rows = 11, most_places = 1 << most_rows;
  static constexpr int most = most_places - 1;  // entries that a writer gives a dictionary

  Scalar keys[most_places + lanes_per_row];        // the entries' keys in order, then the largest number
  Scalar kept[most_places + lanes_per_row];        // keys as they were before others came
  Scalar recent[lanes_per_row];                    // keys that are not among the entries yet
  uint32_t places[lanes_per_row];                  // of these, once they will be
  uint32_t tree[sizeof(Scalar) / 4][most_places];  // a search tree of them, row by row; upper halves apart
  uint32_t counts[most_places + lanes_per_row];    // of each key, how often a chunk has it
  uint32_t ranks[most_places + lanes_per_row];     // of each key, where the more frequent ones come first
  uint32_t by_rank[most_places + lanes_per_row];   // the places of keys, in the order of their ranks
  int entries;                                     // 0: there is no dictionary
  bool is_ranked;                                  // entries are in the order of their ranks
  bool is_of_group;                                // all of the group's elements are in it
  bool is_hopeless;                                // these are too many different ones
};

}  // namespace arrcomp
