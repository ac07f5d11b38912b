// How a bucketed payload is laid out: from the data type, the number of elements and the codec's parameters alone.
// FORMAT.md, section 5.
#pragma once
#include "stream/plan.h"

namespace arrcomp {

// What a codec asks for of a bucket's values beside whether all are finite: the smallest and the largest, with these
// added; or with `largest_magnitude` that alone, of the finite ones.
enum Moments : int {
  no_moments = 0,
  sum_of_squares = 1,
  sum_of_logarithms = 2,
  mean_and_deviation = 3,
  largest_magnitude = 4
};

// What a codec's settings say of its payloads.
struct BucketLayout {
  uint64_t bucket_size;   // elements; 0: all of an array are one bucket
  uint32_t bucket_bytes;  // stored for each bucket
  uint32_t array_bytes;   // stored once, in front of the buckets'; a multiple of 8
  uint32_t code_bits;     // of each element
  bool skip_incomplete;   // a last, shorter bucket is stored as it is
  // Codes are bytes, one after the other, behind all else: what a payload is made of before they are entropy coded.
  bool byte_codes = false;
  uint64_t min_count = 0;   // arrays of fewer elements are stored as they are
  bool has_extras = false;  // some elements have more bits, which stand at the payload's end
  uint32_t extra_bits = 0;  // so many
};

// Bytes of a number in the arithmetic type: float64 for 64-bit elements, else float32.
ARRCOMP_SHARED constexpr uint32_t scalar_bytes(const Element& element) { return element.width == 64 ? 8 : 4; }

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
  uint64_t length;       // of the payload, up to the extra words
  bool byte_codes;       // all but the codes is in front of them

  bool has_extras;
  uint32_t extra_bits;        // of each element that has extra bits
  uint64_t directory_offset;  // of the chunks' ends among the extra words

  ARRCOMP_SHARED constexpr uint64_t chunks() const { return ceil_div(quantized, chunk_size); }
  ARRCOMP_SHARED constexpr uint64_t bucket_offset(uint64_t bucket) const {
    return buckets_offset + bucket * bucket_bytes;
  }
  ARRCOMP_SHARED constexpr uint64_t buckets_end() const { return bucket_offset(buckets); }
  // Where what follows the buckets' numbers, or the tail, and their padding begins.
  ARRCOMP_SHARED constexpr uint64_t buckets_padded() const { return byte_codes ? tail_offset : codes_offset; }
  ARRCOMP_SHARED constexpr uint64_t tail_padded() const { return byte_codes ? codes_offset : directory_offset; }
  ARRCOMP_SHARED constexpr uint64_t tail_bytes() const { return (count - quantized) * (element.width / 8); }
  ARRCOMP_SHARED constexpr uint64_t chunk_extras() const { return uint64_t{rows_per_chunk} * extra_bits; }  // at most
};

// Where the extra words of chunks end, in words from the directory's end: an entry for each chunk.
ARRCOMP_SHARED uint64_t* extras_directory(const BucketPlan& plan, uint8_t* payload) {
  return reinterpret_cast<uint64_t*>(payload + plan.directory_offset);
}
ARRCOMP_SHARED const uint64_t* extras_directory(const BucketPlan& plan, const uint8_t* payload) {
  return reinterpret_cast<const uint64_t*>(payload + plan.directory_offset);
}
// The extra words of all chunks.
ARRCOMP_SHARED uint32_t* extra_words(const BucketPlan& plan, uint8_t* payload) {
  return reinterpret_cast<uint32_t*>(payload + plan.length);
}
ARRCOMP_SHARED const uint32_t* extra_words(const BucketPlan& plan, const uint8_t* payload) {
  return reinterpret_cast<const uint32_t*>(payload + plan.length);
}

// Bytes of the codes of `quantized` elements.
ARRCOMP_SHARED constexpr uint64_t code_bytes(uint64_t quantized, uint32_t bits) {
  return ceil_div(ceil_div(quantized, lanes_per_row) * bits, 16) * 64;
}

ARRCOMP_SHARED constexpr BucketPlan make_bucket_plan(const BucketLayout& layout, const Element& element,
                                                     uint64_t count) {
  BucketPlan plan{};
  plan.element = element;
  plan.bucket_bytes = layout.bucket_bytes;
  plan.code_bits = layout.code_bits;
  plan.count = plan.quantized = count;
  plan.bucket_size = layout.bucket_size;
  plan.byte_codes = layout.byte_codes;
  plan.has_extras = layout.has_extras;
  plan.extra_bits = layout.extra_bits;
  if (layout.bucket_size == 0) plan.bucket_size = count > 0 ? count : 1;
  if (layout.skip_incomplete) plan.quantized -= count % plan.bucket_size;
  if (count < layout.min_count) plan.quantized = 0;
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
  plan.directory_offset = round_up(plan.tail_offset + plan.tail_bytes(), 8);
  plan.length = plan.directory_offset + (plan.has_extras ? plan.chunks() * sizeof(uint64_t) : 0);
  return plan;
}

}  // namespace arrcomp
