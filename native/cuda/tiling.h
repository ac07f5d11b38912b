// How the arrays of a call are cut into units, each the work of a warp. Units are counted through all arrays of a call.
#pragma once
#include "backend.h"

namespace arrcomp::cuda {

// Groups, each a unit.
struct GroupTiling {
  using Plan = arrcomp::Plan;
  Element element;

  ARRCOMP_SHARED Plan plan(uint64_t count) const { return make_plan(element, count); }
  ARRCOMP_SHARED static uint64_t units(const Plan& plan) { return plan.groups; }
};

// Bucketed payloads: a unit is a chunk, or, behind the chunks, as many of the elements that are stored as they are. An
// array without elements has a unit too: its length is written, and checked, like any other's.
struct BucketTiling {
  using Plan = BucketPlan;
  Element element;
  BucketLayout layout;

  ARRCOMP_SHARED Plan plan(uint64_t count) const { return make_bucket_plan(layout, element, count); }
  ARRCOMP_SHARED static uint64_t units(const Plan& plan) {
    const uint64_t units = plan.chunks() + ceil_div(plan.count - plan.quantized, chunk_size);
    return units > 0 ? units : 1;
  }
};

// The units of all arrays of a call.
template <class Tiling, class Array>
uint64_t units_of_all(const Tiling& tiling, std::span<const Array> arrays) {
  uint64_t units = 0;
  for (const Array& array : arrays) units += tiling.units(tiling.plan(array.count));
  return units;
}

}  // namespace arrcomp::cuda
