// The hash of a reference: 32 chains of 64 bits a block, whose ends are mixed and added up (FORMAT.md, section 10.4).
#pragma once
#include "codecs/element_types.h"
#include "codecs/referenced/ahead.h"
#include "stream/reference.h"

namespace arrcomp::ARRCOMP_ISA {

ARRCOMP_INLINE U32 rotate_left(U32 x, int k) { return x << k | x >> (32 - k); }

// The last step of MurmurHash3 (A. Appleby).
ARRCOMP_INLINE U32 mix_bits(U32 z) {
  z = (z ^ z >> 16) * splat<U32>(0x85ebca6b);
  z = (z ^ z >> 13) * splat<U32>(0xc2b2ae35);
  return z ^ z >> 16;
}

class BlockHash {
 public:
  static constexpr uint64_t row_bytes = 128;

  // What block `block` of the `size` bytes of an array adds to its hash. `row` is memory for a row.
  ARRCOMP_PART static uint64_t of(const uint8_t* bytes, uint64_t size, uint64_t block, uint32_t* row) {
    const uint64_t begin = block * hash_block_bytes, left = size - begin;
    const uint64_t own = left < hash_block_bytes ? left : hash_block_bytes, whole = own / row_bytes * row_bytes;
    BlockHash hash;
    for (uint64_t at = 0; at < whole; at += row_bytes) {
      fetch_ahead<row_bytes>(bytes + begin + at);
      hash.add(load_row_of_words(bytes + begin + at));
    }
    if (whole < own) hash.add(part_of_row(bytes + begin + whole, own - whole, row));
    return hash.sum(block);
  }

 private:
  ARRCOMP_METHOD BlockHash() : a_(splat<U32>(0x165667b1)), b_(splat<U32>(0x27d4eb2f)) {}

  ARRCOMP_METHOD void add(U32 words) {
    a_ = rotate_left(a_ ^ words, 13) * splat<U32>(0x9e3779b1);
    b_ = rotate_left((b_ + words) * splat<U32>(0x85ebca77), 17);
  }

  ARRCOMP_METHOD uint64_t sum(uint64_t block) const {
    const U32 g = splat<U32>(static_cast<uint32_t>(block * lanes_per_row)) + lane_numbers();
    const U32 u = mix_bits(a_ + g * splat<U32>(0x9e3779b1));
    const U32 v = mix_bits((b_ ^ u) + g * splat<U32>(0x85ebca77));
    return or_all(broadcast_last(prefix_sum(join(u, v))));
  }

  // Elements of less than 32 bits may begin between words, which a GPU cannot load.
  ARRCOMP_METHOD static U32 load_row_of_words(const uint8_t* p) {
    if (keeps_rows || reinterpret_cast<uintptr_t>(p) % 4 == 0) return load(reinterpret_cast<const uint32_t*>(p));
    U32 words = load_apart(p, 4, lanes_per_row);
    for (int byte = 1; byte < 4; ++byte) words = words | load_apart(p + byte, 4, lanes_per_row) << 8 * byte;
    return words;
  }

  // The last bytes of an array, and zeros behind them.
  ARRCOMP_METHOD static U32 part_of_row(const uint8_t* p, uint64_t size, uint32_t* row) {
    sync();
    store(row, splat<U32>(0));
    sync();
    auto* const bytes = reinterpret_cast<uint8_t*>(row);
    for (uint64_t at = 0; at < size; at += lanes_per_row) {
      const int n = size - at < lanes_per_row ? static_cast<int>(size - at) : lanes_per_row;
      store_row(bytes + at, load_row(p + at, n), n);
    }
    sync();
    return load(row);
  }

  U32 a_, b_;
};

}  // namespace arrcomp::ARRCOMP_ISA
