// Some elements of an array, from those groups of its payload that have them.
#pragma once
#include "cpu/driver.h"

namespace arrcomp::cpu {

// Elements [first, end) of an array with `count` of them, `item` bytes each.
struct IndexRange {
  uint64_t first, end, count, item;
};

// The codes of a predicted array that these elements depend on.
std::vector<IndexRange> codes_of_range(const Prediction& prediction, uint64_t first, uint64_t end);

// Decodes these to `target`; false where a group that has any is corrupt.
bool decode_range_of_groups(const Plan& plan, const Codec& codec, const Groups& groups, const IndexRange& part,
                            uint8_t* target, int threads);

// The same; false where header or directory are corrupt, too.
bool decode_range_of_groups(const Plan& plan, const Codec& codec, const uint8_t* payload, uint64_t length,
                            const IndexRange& part, uint8_t* target, int threads);

// The same of the payload of a predicted array: only the groups of codes are decoded that these elements depend on.
bool decode_range_of_predicted(const Element& element, const uint8_t* payload, uint64_t length, const IndexRange& part,
                               uint8_t* target, int threads);

}  // namespace arrcomp::cpu
