// The scratch memory of calls for predicted arrays.
#pragma once
#include <algorithm>

#include "cuda/predicted_arguments.h"

namespace arrcomp::cuda {

// The most of `amount(elements of a part)` that trials of an array of so many elements take, whatever its axes. Parts of all
// shapes have as many at most.
template <class Amount>
uint64_t most_of_trials(uint64_t count, const Amount& amount) {
  const uint64_t of_whole = count <= Trial::small_plane ? amount(count) : 0;
  if (count <= Trial::small_array) return of_whole;
  return std::max(of_whole, amount(Trial::largest_part));
}

// The groups that an encoder works on at a time, at most: of the array, of parts, and of codes. Those of a part have 4 chunks
// or more.
struct PredictedGroups {
  uint64_t elements, codes;

  PredictedGroups(const Element& element, uint64_t count) {
    elements = std::max(make_plan(element, count).groups, most_of_trials(count, [&](uint64_t part) {
                          return max_candidates * make_plan(element, part, 1).groups;
                        }));
    codes = std::max(make_codes_plan(element, count).groups, most_of_trials(count, [&](uint64_t part) {
                       return max_candidates * make_plan(code_element_of(element), part, 4).groups;
                     }));
  }
};

// Where things stand in the scratch memory of a call. What depends on the axes is smaller than here, never larger.
struct PredictedScratch {
  uint64_t arrays, state, predicted, entries, work, memory;

  PredictedScratch(const Element& element, uint64_t count) {
    const PredictedGroups groups(element, count);
    arrays = 256;
    state = after(arrays, (1 + Trial::shapes + max_candidates) * sizeof(EncodeArray));
    predicted = after(state, sizeof(PredictionState));
    entries = after(predicted, (1 + max_candidates) * sizeof(PredictedArray));
    work = after(entries, std::max(groups.elements, groups.codes) * sizeof(uint64_t));
    const uint64_t trials = most_of_trials(count, [&](uint64_t part) {
      const uint64_t plain = cut_bytes(element, part) + coded_bytes(element, part);
      return Trial::shapes * plain + max_candidates * PredictedMemory::to_encode(element, part).bytes();
    });
    memory = after(work, std::max(trials, PredictedMemory::to_encode(element, count).bytes()));
  }

  static uint64_t cut_bytes(const Element& element, uint64_t count) {
    return round_up(count * (element.width / 8), 256);
  }
  static uint64_t coded_bytes(const Element& element, uint64_t count) {
    return round_up(capacity_of_groups(element, count), 256);
  }

 private:
  static uint64_t after(uint64_t begin, uint64_t bytes) { return round_up(begin + bytes, 256); }
};

// Bytes of scratch memory that decoding an array takes.
inline uint64_t predicted_decode_bytes(const Element& element, uint64_t count) {
  return round_up(sizeof(PredictedDecoding), 256) + PredictedMemory::to_decode(element, count).bytes();
}

}  // namespace arrcomp::cuda
