// The payload's header and directory: written and checked here alone (FORMAT.md, section 3).
#pragma once
#include <cstring>

#include "stream/plan.h"
#include "stream/settings.h"

namespace arrcomp {

struct PayloadHeader {
  double bound;
  uint32_t chunks_per_group;
  uint32_t directory_entry_bytes;

  ARRCOMP_SHARED static PayloadHeader of(const Plan& plan, double bound) {
    return {bound, plan.chunks_per_group, plan.directory_entry_bytes};
  }

  // Whether this is the header of a payload of that plan.
  ARRCOMP_SHARED bool fits(const Plan& plan) const {
    return chunks_per_group == plan.chunks_per_group && directory_entry_bytes == plan.directory_entry_bytes &&
           (bound == 0 || (is_quantizable(plan.element, bound) && bound <= 1.7976931348623157e308));
  }
};
static_assert(sizeof(PayloadHeader) == payload_header_bytes);

// End of a group in bytes from the first group.
ARRCOMP_SHARED uint64_t directory_entry(const Plan& plan, const uint8_t* payload, uint64_t group) {
  const uint8_t* entry = payload + payload_header_bytes + group * plan.directory_entry_bytes;
  if (plan.directory_entry_bytes == 8) {
    uint64_t units;
    memcpy(&units, __builtin_assume_aligned(entry, 4), 8);
    return units * 4;
  }
  uint32_t units;
  memcpy(&units, __builtin_assume_aligned(entry, 4), 4);
  return uint64_t{units} * 4;
}

ARRCOMP_SHARED void set_directory_entry(const Plan& plan, uint8_t* payload, uint64_t group, uint64_t end) {
  uint8_t* entry = payload + payload_header_bytes + group * plan.directory_entry_bytes;
  const uint64_t units = end / 4;
  if (plan.directory_entry_bytes == 8) {
    memcpy(entry, &units, 8);
  } else {
    const auto low = static_cast<uint32_t>(units);
    memcpy(entry, &low, 4);
  }
}

}  // namespace arrcomp
