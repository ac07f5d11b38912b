// The memory that coding by contexts needs. No constructor: it is plain memory on every device.
#pragma once
#include <cstdint>

#include "stream/constants.h"

namespace arrcomp {

// Of each sum of the sizes of words (contexts.h): its table, by where this begins behind the first one, in units of 4
// bytes, and the table's escape.
struct TablesOfSums {
  static constexpr int count = 16;  // the largest sum is 12

  uint32_t starts[count], escapes[count];
};

// Of a chunk that may be coded so.
struct ContextMemory {
  uint16_t words[chunk_size + lanes_per_row];  // of each lane, row by row
  uint32_t counts[context_count][symbol_count];
  TablesOfSums of_sums;
  uint8_t tables[context_count];
};

}  // namespace arrcomp
