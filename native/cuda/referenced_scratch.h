// The scratch memory of calls for arrays with a reference that are encoded.
#pragma once
#include <algorithm>

#include "cuda/referenced_arguments.h"
#include "stream/prediction_trial.h"

namespace arrcomp::cuda {

// Codes of bits, or of steps.
inline Element code_element(const Element& element, bool are_bits) {
  return code_element_of(element, are_bits ? 0 : 1, ReferenceWay::difference);
}

// The groups that an encoder works on at a time, at most: of the array or its exact elements, of codes, and of gaps.
struct ReferenceGroups {
  uint64_t elements, codes, gaps;

  ReferenceGroups(const Element& element, const Element& code, uint64_t count)
      : elements(std::max(make_plan(element, count).groups, most_way_samples)),
        codes(std::max(make_plan(code, count).groups, 2 * most_way_samples)),
        gaps(2 * make_list_plan(gap_element_of(count), most_listed(count)).groups) {}
};

// Where things stand in the scratch memory of a call.
struct ReferenceScratch {
  ReferenceMemory parts;
  uint64_t arrays, state, blocks, entries, work, memory;

  ReferenceScratch(const Element& element, bool are_bits, uint64_t count)
      : parts(ReferenceMemory::to_encode(element, code_element(element, are_bits), are_bits, count)) {
    const Element code = code_element(element, are_bits);
    const ReferenceGroups groups(element, code, count);
    const uint64_t all_blocks = ceil_div(count * (element.width / 8), hash_block_bytes);
    arrays = 256;
    state = after(arrays, (lists_of_reference + 2 * most_way_samples) * sizeof(EncodeArray));
    blocks = after(state, sizeof(ReferenceState));
    entries = after(blocks, all_blocks * sizeof(DeltaCounts));
    work = after(entries, std::max({groups.elements, groups.codes, groups.gaps}) * sizeof(uint64_t));
    memory = after(work, parts.bytes());
  }

 private:
  static uint64_t after(uint64_t begin, uint64_t bytes) { return round_up(begin + bytes, 256); }
};

}  // namespace arrcomp::cuda
