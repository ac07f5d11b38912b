// The memory that coding by classes needs. No constructor: it is plain memory on every device.
#pragma once
#include <cstdint>

#include "stream/constants.h"

namespace arrcomp {

// Of a chunk that may be coded so.
struct ClassMemory {
  uint32_t counts[symbol_count];
  uint32_t codes[symbol_count];   // of the chunk's own frequencies
  uint32_t own[symbol_count];     // the chunk's table
  uint32_t shared[symbol_count];  // that of a chunk behind
  int classes;                    // that the own table has
  int told, told_by_shared;       // bits below the highest one
  bool is_own;                    // what the chunk is coded with
};

}  // namespace arrcomp
