// Sums of payloads: what the elements of a sum are. They are calculated in the arithmetic type, one term after the
// other: (start +) weight_0 y_0 + weight_1 y_1 ..., each operation rounded to nearest even, with the elements y as
// decoding gives them; the sum is rounded to the element type once. An infinity stays one, NaN is the quiet one.
#pragma once
#include <span>

#include "stream/codec.h"

namespace arrcomp {

// A payload that is added, in the memory space of a back end.
struct Summand {
  const uint8_t* payload;  // `limit` bytes, aligned to 8
  uint64_t limit;
  const uint64_t* length;  // of the payload, aligned to 4; null where it is `limit`
  double weight;           // finite in the arithmetic type
};

// Payloads of one codec, data type and number of elements.
struct Sum {
  const Codec& codec;  // one that has_sums
  const Element& element;
  std::span<const Summand> terms;  // at least one
  uint64_t count;                  // elements
};

// Codecs whose payloads can be added without decoding them to memory: where rows can be read at random they need no more
// than a `has_sums`, but each adds much code, and QSGD's are what an all-reduce adds.
template <class Settings>
concept HasSums = requires(const Settings& settings) { settings.has_sums(); };

inline bool has_sums(const Codec& codec) {
  const auto visitor = []<class Settings>(const Settings& settings) {
    if constexpr (HasSums<Settings>) return settings.has_sums();
    return false;
  };
  return std::visit(visitor, codec.settings);
}

// Whether a sum can be encoded chunk by chunk: no bucket reaches into another chunk, and the tail begins with a row.
constexpr bool fits_chunks(const BucketLayout& layout) {
  return !layout.byte_codes && layout.array_bytes == 0 && layout.bucket_size > 0 &&
         layout.bucket_size % lanes_per_row == 0 && chunk_size % layout.bucket_size == 0;
}

}  // namespace arrcomp
