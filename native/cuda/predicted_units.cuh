// How warps take arrays of a call that are predicted, and parts of these.
#pragma once
#define ARRCOMP_ISA cuda
#include "codecs/predicted/predicted_types.h"
#include "cuda/predicted_arguments.h"
#include "cuda/warps.cuh"

namespace arrcomp::cuda {

// Elements, or codes, that a warp works on at a time.
constexpr uint64_t part_size = 1024;
ARRCOMP_SHARED constexpr uint64_t parts_of(uint64_t count) { return ceil_div(count, part_size); }

// Calls visit(array, unit) for the units of all arrays that this warp takes. `units(array)` are those of an array.
template <class Units, class Visit>
ARRCOMP_METHOD void for_each_unit(const PredictionArguments& a, Units units, Visit visit) {
  const uint64_t warps = warps_of_grid();
  uint64_t unit = warp_of_grid();
  for (uint64_t i = 0; i < a.count; ++i) {
    PredictedArray& array = a.arrays[i];
    const uint64_t count = array.is_active ? units(array) : 0;
    for (; unit < count; unit += warps) visit(array, unit);
    unit -= count;
  }
}

// Calls visit(array, k, begin, end) for parts of step k, the `finer`-th from the finest one.
template <class Elements, class Visit>
ARRCOMP_METHOD void for_each_part_of_step(const PredictionArguments& a, int finer, Elements elements, Visit visit) {
  const auto step_of = [&](const PredictedArray& array) { return array.prediction.steps - 1 - finer; };
  const auto count_of = [&](const PredictedArray& array) {
    return step_of(array) < 0 ? 0 : elements(array.refinements[step_of(array)]);
  };
  for_each_unit(
      a, [&](const PredictedArray& array) { return parts_of(count_of(array)); },
      [&](PredictedArray& array, uint64_t part) {
        const uint64_t begin = part * part_size, end = begin + part_size, count = count_of(array);
        visit(array, step_of(array), begin, end < count ? end : count);
      });
}

// Calls visit(array, begin, end) for parts of its elements.
template <class Visit>
ARRCOMP_METHOD void for_each_part(const PredictionArguments& a, Visit visit) {
  for_each_unit(
      a, [](const PredictedArray& array) { return parts_of(array.elements()); },
      [&](PredictedArray& array, uint64_t part) {
        const uint64_t begin = part * part_size, end = begin + part_size, count = array.elements();
        visit(array, begin, end < count ? end : count);
      });
}

template <class T>
ARRCOMP_METHOD auto* codes_of(const PredictedArray& array) {
  return reinterpret_cast<typename T::Word::scalar*>(array.codes);
}

}  // namespace arrcomp::cuda
