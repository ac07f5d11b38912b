// Sums of payloads on the CPU.
#include <cstring>

#include "backend.h"
#include "cpu/buckets.h"
#include "cpu/driver.h"
#include "floating_point.h"
#include "memory.h"

namespace arrcomp::cpu {
namespace {

// The index of the first term whose payload is corrupt, or their number. All payloads of a sum have one length.
size_t first_corrupt(const Sum& sum, const BucketPlan& plan) {
  for (size_t i = 0; i < sum.terms.size(); ++i) {
    const uint64_t length = length_of(sum.terms[i]);
    if (length > sum.terms[i].limit || length != plan.length) return i;
  }
  return sum.terms.size();
}

BucketPlan plan_of(const Sum& sum) {
  BucketLayout layout{};
  bucket_layout(sum.codec, sum.element, layout);
  return make_bucket_plan(layout, sum.element, sum.count);
}

}  // namespace

size_t accumulate(const Sum& sum, const void* start, void* target, int threads) {
  const DefaultFloatingPoint environment;
  const BucketPlan plan = plan_of(sum);
  const size_t corrupt = first_corrupt(sum, plan);
  if (corrupt == sum.terms.size())
    sum_buckets({sum.codec, plan, sum.terms, start}, target, threads_for(sum.count, threads));
  return corrupt;
}

size_t encode_sum(const Sum& sum, const Codec& codec, uint8_t* payload, uint64_t* length, const Seed& seed,
                  int threads) {
  const DefaultFloatingPoint environment;
  const BucketPlan plan = plan_of(sum);
  const size_t corrupt = first_corrupt(sum, plan);
  if (corrupt < sum.terms.size()) return corrupt;
  const SumJob job{sum.codec, plan, sum.terms, nullptr};
  threads = threads_for(sum.count, threads);
  if (BucketLayout layout; bucket_layout(codec, sum.element, layout) && fits_chunks(layout)) {
    const BucketPlan result = make_bucket_plan(layout, sum.element, sum.count);
    encode_sum_by_chunks(job, codec, result, payload, seed_value(seed), threads);
    memcpy(length, &result.length, sizeof *length);
    return corrupt;
  }
  const auto array = allocated<uint8_t>(sum.count * (sum.element.width / 8), "a sum");
  sum_buckets(job, array.get(), threads);
  const EncodeTask encoding{array.get(), payload, sum.count};
  encode(codec, sum.element, {&encoding, 1}, length, seed, threads);
  return corrupt;
}

}  // namespace arrcomp::cpu
