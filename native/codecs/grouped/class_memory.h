// The memory that coding by classes needs. No constructor: it is plain memory on every device.
#pragma once
#include <cstdint>

#include "stream/constants.h"

namespace arrcomp {

// A writer's table: frequency | first slot << 16 of each class, and 1 / frequency as ClassEncoder wants it.
struct ClassTable {
  uint32_t entries[symbol_count], reciprocals[symbol_count];
};

// Of a chunk that may be coded so.
struct ClassMemory {
  uint32_t counts[symbol_count];
  uint32_t codes[symbol_count];  // of the chunk's own frequencies
  ClassTable own;                // the chunk's table
  ClassTable shared;             // that of a chunk behind
  int classes;                   // that the own table has
  int told, told_by_shared;      // bits below the highest one
  bool is_own;                   // what the chunk is coded with
};

}  // namespace arrcomp
