// The memory that encoding a group needs, one for each thread or warp. No constructor: it is plain memory on every
// device.
#pragma once
#include "codecs/grouped/class_memory.h"
#include "codecs/grouped/context_memory.h"
#include "codecs/grouped/dictionary_memory.h"
#include "codecs/grouped/missing_head.h"
#include "codecs/grouped/rans_tables.h"
#include "stream/multiples_choice.h"
#include "stream/plan.h"

namespace arrcomp {

constexpr uint32_t encoder_overrun = 4 * lanes_per_row;  // vector stores may pass the end

// Of a chunk that leaves out its missing elements.
template <class Scalar>
struct MissingMemory {
  Scalar elements[chunk_size + encoder_overrun];  // those that stay
  uint32_t marks[chunk_size + encoder_overrun];
  uint32_t masks[rows_per_chunk];
  uint32_t upper[2 * rows_per_chunk + lanes_per_row];  // parts of marks, in unary
  Scalar fill;                                         // the bits of those that do not stay
  MissingHead head;
  uint32_t bits;       // that the marks take
  ElementRange chunk;  // all of its elements
};

// Of a chunk whose elements have numbers.
template <class Scalar>
struct NumberedMemory {
  Scalar numbers[chunk_size + encoder_overrun];
  uint32_t failed[rows_per_chunk];  // lanes whose element has none
  ElementRange elements;
  IntegerMultiples<Scalar> integers;
  bool are_sure;  // these integers: not found by chance

  // While they are tried, as a GPU's registers are few: which may do, and which are the best so far.
  int multiples, best;
  uint32_t index_bits;  // of all elements
  bool may_be_places, left_out_before;
};

// `chunks`: the most that a group has.
template <class Scalar, int chunks>
struct EncoderMemory {
  static constexpr uint32_t raw_chunk = raw_chunk_bytes(rows_per_chunk, sizeof(Scalar) * 8);
  static constexpr uint32_t max_exception_bytes = 4 + max_exceptions * (2 + sizeof(Scalar));
  static constexpr uint32_t max_mask_bytes = 8 + rows_per_chunk * 4;
  static constexpr uint32_t max_missing_bytes = 16 + rows_per_chunk * 4;
  static constexpr uint32_t tile_words = rows_per_tile * lanes_per_row * (2 + sizeof(Scalar) / 2);
  // The words of a chunk are checked against a raw chunk's size after each tile; the rest is kept only where it is
  // smaller.
  static constexpr uint32_t max_words = chunks * raw_chunk / 2 + tile_words + encoder_overrun;
  static constexpr uint32_t max_side_bytes =
      (chunks + 1) * raw_chunk + max_exception_bytes + max_mask_bytes + max_missing_bytes + 4 * encoder_overrun;

  union {
    Scalar values[chunk_size + encoder_overrun];   // a chunk's words
    uint16_t upper[chunk_size + encoder_overrun];  // or their upper halves, where the lower ones are near
  };
  uint32_t coded[rows_per_chunk];  // by row: lanes that are not zero
  uint16_t positions[max_exceptions + encoder_overrun];
  uint8_t widths[tiles_per_chunk];
  uint8_t tables[tiles_per_chunk];  // where each tile has its own
  int16_t most_others[chunks];  // of each chunk: than multiples that are wider than the bound, in 1/128 of a row; or -1
  ContextMemory contexts;
  ClassMemory classes;
  MissingMemory<Scalar> missing;
  NumberedMemory<Scalar> numbered;
  DictionaryMemory<Scalar> dictionary;
  alignas(16) uint16_t words[max_words];     // of the group, in the order of encoding
  alignas(16) uint8_t side[max_side_bytes];  // of the group, last chunk first
};

// What a GPU keeps in shared memory.
struct NearMemory {
  alignas(16) uint16_t words[chunk_size + lanes_per_row];  // lower halves
  EncodeEntries entries;                                   // of a table of the entropy coder
};

}  // namespace arrcomp
