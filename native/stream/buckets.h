// How a bucketed payload is laid out: from the data type, the number of elements and the codec's parameters alone.
// FORMAT.md, section 5.
#pragma once
#include "stream/plan.h"

namespace arrcomp {

enum class Norm : int { minmax = 0, l2 = 1, linf = 2 };

struct QsgdSettings {
  int bits;
  uint64_t bucket_size;
  Norm norm;
  bool stochastic;
  bool skip_incomplete;

  // Numbers that are stored for a bucket: unit and least value, or unit alone.
  ARRCOMP_SHARED constexpr int numbers() const { return norm == Norm::minmax ? 2 : 1; }
  ARRCOMP_SHARED constexpr uint32_t largest_code() const {
    return norm == Norm::minmax || bits == 1 ? (1u << bits) - 1 : (1u << bits) - 2;
  }
};

// Numbers of buckets are in the arithmetic type: float64 for 64-bit elements, else float32.
ARRCOMP_SHARED constexpr uint64_t number_bytes(const Element& element) { return element.width == 64 ? 8 : 4; }

struct BucketPlan {
  Element element;
  uint64_t count;      // elements
  uint64_t quantized;  // of them; the others are stored as they are
  uint64_t buckets;
  uint64_t codes_offset;  // of the codes in the payload
  uint64_t tail_offset;   // of the elements that are not quantized
  uint64_t length;        // of the payload

  ARRCOMP_SHARED constexpr uint64_t chunks() const { return ceil_div(quantized, chunk_size); }
};

// Bytes of the codes of `quantized` elements.
ARRCOMP_SHARED constexpr uint64_t code_bytes(uint64_t quantized, int bits) {
  return ceil_div(ceil_div(quantized, lanes_per_row) * static_cast<uint64_t>(bits), 16) * 64;
}

ARRCOMP_SHARED constexpr BucketPlan make_bucket_plan(const QsgdSettings& settings, Element element, uint64_t count) {
  const uint64_t quantized = settings.skip_incomplete ? count - count % settings.bucket_size : count;
  const uint64_t buckets = ceil_div(quantized, settings.bucket_size);
  const uint64_t numbers = buckets * static_cast<uint64_t>(settings.numbers()) * number_bytes(element);
  const uint64_t codes = round_up(numbers, 8);
  const uint64_t tail = codes + code_bytes(quantized, settings.bits);
  const uint64_t end = round_up(tail + (count - quantized) * (element.width / 8), 8);
  return {element, count, quantized, buckets, codes, tail, end};
}

}  // namespace arrcomp
