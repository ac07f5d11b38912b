// How an array is cut and how large its payload can get: from the data type and the number of elements alone, so that
// every caller (CPU, CUDA, shape inference of compilers) comes to the same answer. FORMAT.md, section 3.
#pragma once
#include "inline.h"
#include "stream/constants.h"
#include "stream/element.h"

namespace arrcomp {

ARRCOMP_SHARED constexpr uint64_t ceil_div(uint64_t a, uint64_t b) { return (a + b - 1) / b; }
ARRCOMP_SHARED constexpr uint64_t round_up(uint64_t a, uint64_t b) { return ceil_div(a, b) * b; }

// Bytes of rows * bits bits per lane, bit-packed (FORMAT.md, section 3.3).
ARRCOMP_SHARED constexpr uint32_t packed_bytes(uint32_t bits_per_lane) {
  return bits_per_lane / 32 * 128 + bits_per_lane % 32 * 4;
}

ARRCOMP_SHARED constexpr int tiles_of(int rows) { return (rows + rows_per_tile - 1) / rows_per_tile; }

// A byte for each tile: its width or its table.
ARRCOMP_SHARED constexpr uint32_t bytes_of_tiles(uint32_t rows) {
  return static_cast<uint32_t>(round_up(ceil_div(rows, rows_per_tile), 4));
}

// A chunk stored raw: header, widths and all bits of its rows. No chunk gets larger.
ARRCOMP_SHARED constexpr uint32_t raw_chunk_bytes(uint32_t rows, uint32_t width) {
  return 4 + bytes_of_tiles(rows) + packed_bytes(rows * width);
}

struct Plan {
  Element element;
  uint64_t count;  // elements
  uint32_t chunks_per_group;
  uint32_t directory_entry_bytes;
  uint64_t groups;

  ARRCOMP_SHARED constexpr uint64_t group_size() const { return uint64_t{chunks_per_group} * chunk_size; }
  ARRCOMP_SHARED constexpr uint64_t group_count(uint64_t group) const {  // elements in it
    const uint64_t first = group * group_size();
    return count - first < group_size() ? count - first : group_size();
  }
  ARRCOMP_SHARED constexpr uint64_t groups_offset() const {  // of the first group in the payload
    return round_up(payload_header_bytes + groups * directory_entry_bytes, 8);
  }
  ARRCOMP_SHARED constexpr uint32_t group_capacity() const {
    return chunks_per_group * raw_chunk_bytes(rows_per_chunk, element.width) + states_bytes;
  }
};

// The more chunks share one set of coder states, the fewer bytes these take, and the fewer groups there are to share.
// Beside elements of 8 bits they weigh most.
ARRCOMP_SHARED constexpr uint32_t chunks_for(const Element& element, uint64_t count) {
  const int shift = element.width == 8 ? 1 : 0;
  return count >> (18 - shift) == 0 ? 1 : count >> (20 - shift) == 0 ? 2 : 4;
}

ARRCOMP_SHARED constexpr Plan make_plan(Element element, uint64_t count, uint32_t chunks) {
  const uint32_t entry = count * (element.width / 8) >= (1ull << 33) ? 8 : 4;
  return {element, count, chunks, entry, ceil_div(count, uint64_t{chunks} * chunk_size)};
}
ARRCOMP_SHARED constexpr Plan make_plan(Element element, uint64_t count) {
  return make_plan(element, count, chunks_for(element, count));
}

}  // namespace arrcomp
