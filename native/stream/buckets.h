// How a bucketed payload is laid out: from the data type, the number of elements and the codec's parameters alone.
// FORMAT.md, section 5.
#pragma once
#include "stream/plan.h"

namespace arrcomp {

// What a codec asks for of a bucket's values beside whether all are finite: the smallest and the largest, with these
// added; or with `largest_magnitude` that alone, of the finite ones.
enum Moments : int { no_moments = 0, sum_of_squares = 1, sum_of_logarithms = 2, largest_magnitude = 1 << 8 };

// What a codec's settings say of its payloads.
struct BucketLayout {
  uint64_t bucket_size;   // elements; 0: all of an array are one bucket
  uint32_t bucket_bytes;  // stored for each bucket
  uint32_t array_bytes;   // stored once, in front of the buckets'; a multiple of 8
  uint32_t code_bits;     // of each element
  bool skip_incomplete;   // a last, shorter bucket is stored as it is
  // Codes are bytes, one after the other, behind all else: what a payload is made of before they are entropy coded.
  bool byte_codes = false;
};

// Bytes of a number in the arithmetic type: float64 for 64-bit elements, else float32.
ARRCOMP_SHARED constexpr uint32_t number_bytes(const Element& element) { return element.width == 64 ? 8 : 4; }

struct BucketPlan {
  Element element;
  uint32_t bucket_bytes;  // stored for each bucket
  uint32_t code_bits;
  uint64_t count;        // elements
  uint64_t quantized;    // of them; the others are stored as they are
  uint64_t bucket_size;  // elements, at least 1
  uint64_t buckets;
  uint64_t buckets_offset;  // of what is stored for the buckets, in the payload; in front of it is what is stored once
  uint64_t codes_offset;
  uint64_t tail_offset;  // of the elements that are not quantized
  uint64_t length;       // of the payload
  bool byte_codes;       // all but the codes is in front of them

  ARRCOMP_SHARED constexpr uint64_t chunks() const { return ceil_div(quantized, chunk_size); }
  ARRCOMP_SHARED constexpr uint64_t bucket_offset(uint64_t bucket) const {
    return buckets_offset + bucket * bucket_bytes;
  }
  ARRCOMP_SHARED constexpr uint64_t buckets_end() const { return bucket_offset(buckets); }
  // Where what follows the buckets' numbers, or the tail, and their padding begins.
  ARRCOMP_SHARED constexpr uint64_t buckets_padded() const { return byte_codes ? tail_offset : codes_offset; }
  ARRCOMP_SHARED constexpr uint64_t tail_padded() const { return byte_codes ? codes_offset : length; }
  ARRCOMP_SHARED constexpr uint64_t tail_bytes() const { return (count - quantized) * (element.width / 8); }
};

// Bytes of the codes of `quantized` elements.
ARRCOMP_SHARED constexpr uint64_t code_bytes(uint64_t quantized, uint32_t bits) {
  return ceil_div(ceil_div(quantized, lanes_per_row) * bits, 16) * 64;
}

ARRCOMP_SHARED constexpr BucketPlan make_bucket_plan(const BucketLayout& layout, const Element& element,
                                                     uint64_t count) {
  BucketPlan plan{element, layout.bucket_bytes, layout.code_bits, count, count, layout.bucket_size, 0, 0, 0, 0,
                  0,       layout.byte_codes};
  if (layout.bucket_size == 0) plan.bucket_size = count > 0 ? count : 1;
  if (layout.skip_incomplete) plan.quantized -= count % plan.bucket_size;
  plan.buckets = ceil_div(plan.quantized, plan.bucket_size);
  plan.buckets_offset = layout.array_bytes;
  if (plan.byte_codes) {
    plan.tail_offset = round_up(plan.buckets_end(), 8);
    plan.codes_offset = round_up(plan.tail_offset + plan.tail_bytes(), 8);
    plan.length = plan.codes_offset + plan.quantized;
    return plan;
  }
  plan.codes_offset = round_up(plan.buckets_end(), 8);
  plan.tail_offset = plan.codes_offset + code_bytes(plan.quantized, plan.code_bits);
  plan.length = round_up(plan.tail_offset + plan.tail_bytes(), 8);
  return plan;
}

}  // namespace arrcomp
