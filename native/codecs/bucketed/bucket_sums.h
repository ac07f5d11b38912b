// Sums of bucketed payloads on lanes (stream/sums.h): rows are decoded out of all terms at once and added in registers.
#pragma once
#include "codecs/bucketed/bucket_chunks.h"
#include "stream/sums.h"

namespace arrcomp::ARRCOMP_ISA {

// Packed bits of `width` for each lane from row `row` on.
ARRCOMP_INLINE CodeBitReader packed_rows(const uint8_t* section, uint64_t bytes, uint64_t row, uint32_t width) {
  const uint64_t bit = row * width;
  CodeBitReader reader(section + bit / 32 * 128, section + bytes);
  reader.get(static_cast<int>(bit % 32), U32{});
  return reader;
}

template <class Coder>
class BucketSum {
  using Real = typename Coder::Real;
  using Scalar = typename Real::scalar;

 public:
  // `start` is an array that the sum begins with, or null.
  ARRCOMP_METHOD BucketSum(const BucketContext<Coder>& context, const Summand* terms, uint64_t count, const void* start)
      : context_(context), terms_(terms), count_(count), start_(start) {}

  // Puts elements [first, first + count) to `target`, where `start` may be. `first` is a multiple of 32.
  ARRCOMP_METHOD void store(uint64_t first, uint64_t count, void* target) const {
    const BucketPlan& plan = context_.plan;
    const uint64_t end = first + count, coded = end < plan.quantized ? end : plan.quantized;
    if (first < coded) store_coded(first, coded, target);
    for (uint64_t i = first < coded ? coded : first; i < end; i += lanes_per_row)
      put<1>(i, end, first, target, [&](const Summand& term, Real(&y)[1]) ARRCOMP_LAMBDA {
        y[0] = elements_at(term.payload + plan.tail_offset, i - plan.quantized, end - plan.quantized);
      });
  }

 private:
  ARRCOMP_METHOD static int lanes_before(uint64_t i, uint64_t end) {
    return end - i < lanes_per_row ? static_cast<int>(end - i) : lanes_per_row;
  }

  // The row of an array that begins at element i.
  ARRCOMP_METHOD Real elements_at(const void* array, uint64_t i, uint64_t end) const {
    return load_real<Real>(context_.plan.element, array, i, lanes_before(i, end));
  }

  // Rows that are in one bucket are decoded several at once.
  ARRCOMP_METHOD void store_coded(uint64_t first, uint64_t end, void* target) const {
    constexpr uint64_t at_once = rows_at_once * lanes_per_row;
    const uint64_t size = context_.plan.bucket_size;
    BucketRows buckets(first, size, static_cast<int>((end - 1) / size - first / size) + 1);
    for (uint64_t i = first; i < end;) {
      if (rows_at_once > 1 && i + at_once <= end && buckets.in_one(i - first, at_once)) {
        put<rows_at_once>(i, end, first, target, [&](const Summand& term, auto& y) ARRCOMP_LAMBDA {
          of_codes(term.payload, i, first, buckets, y);
        });
        i += at_once;
      } else {
        const BucketRows before = buckets;  // the same for all terms
        put<1>(i, end, first, target, [&](const Summand& term, Real(&y)[1]) ARRCOMP_LAMBDA {
          buckets = before;
          of_codes(term.payload, i, first, buckets, y);
        });
        i += lanes_per_row;
      }
    }
  }

  // Puts the sums of n rows from element i on; `elements(term, y)` gives those of a term.
  template <int n, class Elements>
  ARRCOMP_METHOD void put(uint64_t i, uint64_t end, uint64_t first, void* target, Elements elements) const {
    Real sums[n];
    ARRCOMP_UNROLL for (int r = 0; r < n; ++r) {
      const uint64_t at = i + static_cast<uint64_t>(r) * lanes_per_row;
      sums[r] = start_ != nullptr ? elements_at(start_, at, end) : splat<Real>(0);
    }
    for (uint64_t t = 0; t < count_; ++t) {
      const Real weight = splat<Real>(static_cast<Scalar>(terms_[t].weight));
      const bool is_first = t == 0 && start_ == nullptr;
      Real y[n];
      elements(terms_[t], y);
      ARRCOMP_UNROLL for (int r = 0; r < n; ++r) sums[r] = is_first ? y[r] * weight : sums[r] + y[r] * weight;
    }
    // Lanes beyond the end have read the last element of `start`, which may be where the last sum comes.
    if (start_ != nullptr && lanes_before(i, end) < lanes_per_row) sync();
    ARRCOMP_UNROLL for (int r = 0; r < n; ++r) {
      const uint64_t at = i + static_cast<uint64_t>(r) * lanes_per_row;
      store_real(context_.plan.element, target, at - first, lanes_before(at, end), with_quiet_nan(sums[r]));
    }
  }

  // The elements of n rows from i on, in one bucket if n is above 1.
  template <int n>
  ARRCOMP_METHOD void of_codes(const uint8_t* payload, uint64_t i, uint64_t first, BucketRows& buckets,
                               Real (&y)[n]) const {
    const BucketPlan& plan = context_.plan;
    const Coder coder = context_.coder(payload);
    const uint64_t first_bucket = first / plan.bucket_size;
    Real values[Coder::decode_values];
    const bool simple =
        buckets.row(i - first, values, [&](int bucket, Scalar(&of_bucket)[Coder::decode_values]) ARRCOMP_LAMBDA {
          const uint64_t at = plan.bucket_offset(first_bucket + static_cast<uint64_t>(bucket));
          return coder.decoded_of(coder.load(payload + at), of_bucket);
        });
    CodeBitReader reader = packed_rows(payload + plan.codes_offset, code_bytes(plan.quantized, plan.code_bits),
                                       i / lanes_per_row, plan.code_bits);
    ARRCOMP_UNROLL for (int r = 0; r < n; ++r) {
      const U32 code = reader.get(static_cast<int>(plan.code_bits), U32{});
      y[r] = rounded_to(plan.element, coder.decode(code, values, simple));
    }
  }

  BucketContext<Coder> context_;
  const Summand* terms_;
  uint64_t count_;
  const void* start_;
};

}  // namespace arrcomp::ARRCOMP_ISA
