// Where a group's bytes go is known once the sizes of all groups before it are: found in the same launch by decoupled
// look-back (D. Merrill and M. Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", NVIDIA
// NVR-2016-002), a warp for each group.
#pragma once
#include "lanes/lanes.h"

namespace arrcomp::cuda {

// A group's entry: 0 until it is known, else its own size or the size of all groups up to it.
constexpr uint64_t is_size = uint64_t{1} << 62;
constexpr uint64_t is_total = uint64_t{2} << 62;
constexpr uint64_t entry_value = is_size - 1;

ARRCOMP_INLINE void publish(uint64_t* entries, uint64_t group, uint64_t entry) {
  if (leader())
    atomicExch(reinterpret_cast<unsigned long long*>(entries + group), static_cast<unsigned long long>(entry));
}

// The sizes of all groups before `group`, whose own is `size`. Groups are taken in order (atomic ticket), so that every
// warp waited for runs already.
ARRCOMP_INLINE uint64_t exclusive_sum(uint64_t* entries, uint64_t group, uint32_t size) {
  if (group == 0) {
    publish(entries, 0, is_total | size);
    return 0;
  }
  publish(entries, group, is_size | size);
  uint64_t before = 0;
  for (uint64_t end = group;;) {  // entries [end - 32, end) next; lane 31 is the nearest
    const uint64_t missing = end < lanes_per_row ? lanes_per_row - end : 0;  // lanes in front of the first group
    const Mask exists = mask(missing == 0 ? ~0u : ~0u << missing);
    const U64 entry = load_published(entries + end - lanes_per_row, exists);
    if (any(eq(entry, splat<U64>(0)) & exists)) continue;  // somebody is not ready: look again
    const uint32_t totals = bits(ge(entry, splat<U64>(is_total)) & exists);
    // From the last total on, all entries count.
    const int first = totals == 0 ? 0 : 31 - __clz(totals);
    const Mask counts = mask(~0u << first) & exists;
    before += or_all(broadcast_last(prefix_sum(select(counts, entry & splat<U64>(entry_value), splat<U64>(0)))));
    if (totals != 0) break;
    end -= lanes_per_row;
  }
  publish(entries, group, is_total | (before + size));
  return before;
}

}  // namespace arrcomp::cuda
