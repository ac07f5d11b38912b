// The memory that encoding a group of base-delta chunks needs, one for each thread or warp. No constructor: it is plain
// memory on every device.
#pragma once
#include "stream/base_delta.h"

namespace arrcomp {

template <class Scalar>
struct BaseDeltaMemory {
  static constexpr uint32_t overrun = 4 * lanes_per_row;  // vector stores may pass the end
  static constexpr uint32_t max_bytes = max_chunks_per_group * raw_chunk_bytes(rows_per_chunk, sizeof(Scalar) * 8);

  Scalar values[chunk_size + overrun];  // a chunk's words
  Scalar bases[max_bases * lines_per_chunk];
  uint32_t coded[rows_per_chunk];  // by row: lanes that are coded
  uint8_t tags[lines_per_chunk];
  alignas(16) uint8_t bytes[max_bytes + overrun];  // of the group
};

}  // namespace arrcomp
