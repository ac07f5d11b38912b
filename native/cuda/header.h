// The payload's header, once the range of the values is known where the bound needs it.
#pragma once
#include "cuda/arguments.h"
#include "cuda/range_key.h"
#include "stream/payload.h"

namespace arrcomp::cuda {

// The bound of quantized chunks; 0 if there are none.
ARRCOMP_SHARED double absolute_bound(const EncodeArray& array, const GroupSettings& settings) {
  double bound = settings.kind == BoundKind::absolute ? settings.bound : 0.0;
  if (settings.kind == BoundKind::relative)
    bound = relative_bound(settings.bound, number_of_order_key(~array.range_keys[0]),
                           number_of_order_key(array.range_keys[1]));
  return quantized_bound(array.plan.element, bound);
}

// Writes all up to the groups but the directory's entries.
ARRCOMP_SHARED void write_header(const EncodeArray& array, const GroupSettings& settings) {
  const Plan& plan = array.plan;
  const PayloadHeader header = PayloadHeader::of(plan, absolute_bound(array, settings));
  memcpy(array.payload, &header, sizeof header);
  for (uint64_t b = payload_header_bytes + plan.groups * plan.directory_entry_bytes; b < plan.groups_offset(); ++b)
    array.payload[b] = 0;
}

}  // namespace arrcomp::cuda
