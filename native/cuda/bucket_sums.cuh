// Sums of bucketed payloads as kernels: one warp adds, or adds and encodes, one unit.
#pragma once
#define ARRCOMP_ISA cuda
#include "codecs/bucketed/bucket_sums.h"
#include "cuda/bucket_kernels.cuh"

namespace arrcomp::cuda {

// False, and told to the status, where a term has not the plan's length.
ARRCOMP_INLINE bool all_fit(const SumWork& work) {
  const Summand* const terms = work.terms.begin();
  bool ok = true;
  for (uint64_t t = 0; t < work.terms.count; ++t) {
    const uint64_t length = terms[t].length == nullptr ? terms[t].limit : read_number(terms[t].length);
    ok = ok && length <= terms[t].limit && length == work.plan.length;
  }
  if (!ok && leader()) atomicOr(work.status, 1u);
  return ok;
}

// The least of the elements that are left and those of a unit.
ARRCOMP_SHARED uint64_t unit_count(uint64_t first, uint64_t end) {
  return end - first < chunk_size ? end - first : chunk_size;
}

template <class Coder>
ARRCOMP_INLINE BucketSum<Coder> sum_of(const SumWork& work, const typename Coder::Settings& settings) {
  return BucketSum<Coder>(BucketContext<Coder>{work.plan, settings}, work.terms.begin(), work.terms.count, work.start);
}

// Puts the sum, in units of a chunk's elements, to the target.
template <class Coder>
__global__ void __launch_bounds__(threads_per_block, min_bucket_blocks)
    sum_buckets_kernel(const __grid_constant__ BucketArguments<SumWork, typename Coder::Settings> a) {
  if (!all_fit(a.work)) return;
  const auto sum = sum_of<Coder>(a.work, a.settings);
  for (uint64_t unit = warp_of_grid(); unit < a.work.terms.units; unit += warps_of_grid()) {
    const uint64_t first = unit * chunk_size;
    auto* const target = static_cast<uint8_t*>(a.work.target) + element_bytes(a.work.plan.element, first);
    sum.store(first, unit_count(first, a.work.plan.count), target);
  }
}

// Encodes the sum. Where a term is corrupt, only what the result's length says is written.
template <class Coder>
__global__ void __launch_bounds__(threads_per_block, min_blocks)
    encode_sum_kernel(const __grid_constant__ SumEncodeArguments<typename Coder::Settings> a) {
  __shared__ BucketMemory<Coder> memories[warps_per_block];
  BucketMemory<Coder>& memory = memories[threadIdx.x / lanes_per_row];
  const BucketEncodeArray& result = a.work.result;
  const BucketPlan& plan = result.plan;
  if (warp_of_grid() == 0 && leader()) finish_payload(result);
  if (!all_fit(a.work.sum)) return;
  const uint64_t seed = read_seed(a.work.seed);
  const auto sum = sum_of<Coder>(a.work.sum, a.of_terms);
  uint8_t* const window = a.work.windows + element_bytes(plan.element, warp_of_grid() * chunk_size);
  for (uint64_t unit = warp_of_grid(); unit < a.work.sum.terms.units; unit += warps_of_grid()) {
    if (unit < plan.chunks()) {
      const uint64_t first = unit * chunk_size;
      sync();
      sum.store(first, unit_count(first, plan.quantized), window);
      sync();
      // Where an array would begin that had its elements there.
      const auto* const array =
          reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(window) - element_bytes(plan.element, first));
      const BucketContext<Coder> context{plan, a.of_result};
      BucketChunk<Coder>(context, unit, result.payload).encode(array, result.payload, seed, memory);
    } else {
      const TailPart part(plan, unit);
      uint8_t* const target = result.payload + plan.tail_offset + element_bytes(plan.element, part.first);
      sum.store(plan.quantized + part.first, part.count, target);
    }
  }
}

}  // namespace arrcomp::cuda
