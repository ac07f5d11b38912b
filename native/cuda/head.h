// The payload's head, once the range of the values is known where the bound needs it.
#pragma once
#include "cuda/arguments.h"
#include "cuda/range_key.h"
#include "stream/payload.h"

namespace arrcomp::cuda {

ARRCOMP_SHARED double absolute_bound(const EncodeArguments& a, const Settings& settings) {
  double bound = settings.kind == BoundKind::absolute ? settings.bound : 0.0;
  if (settings.kind == BoundKind::relative)
    bound = relative_bound(settings.bound, number_of_order_key(~a.head->range_keys[0]),
                           number_of_order_key(a.head->range_keys[1]));
  return is_quantizable(a.plan.element, bound) ? bound : 0;
}

// Writes all up to the groups but the directory's entries.
ARRCOMP_SHARED void write_head(const EncodeArguments& a, const Settings& settings) {
  a.head->bound = absolute_bound(a, settings);
  a.head->length = a.plan.groups_offset();
  const PayloadHead head = PayloadHead::of(a.plan, a.head->bound);
  memcpy(a.payload, &head, sizeof head);
  for (uint64_t b = payload_head_bytes + a.plan.groups * a.plan.directory_entry_bytes; b < a.plan.groups_offset(); ++b)
    a.payload[b] = 0;
}

}  // namespace arrcomp::cuda
