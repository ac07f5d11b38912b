// Functions in steps on lanes: which interval a number lies in, and that interval's level.
#pragma once
#include "inline.h"
#include "lanes/lanes.h"
#include "stream/step_tables.h"

namespace arrcomp::ARRCOMP_MACHINE {

ARRCOMP_INLINE F32 real_of(F32 x, F32) { return x; }
ARRCOMP_INLINE F64 real_of(F32 x, F64) { return to_double(x); }

constexpr bool chooses_tables = rows_side_by_side > 1;

template <int size>
ARRCOMP_INLINE F32 table_entry(const uint32_t* table, U32 i) {
  return as_float(lookup<size>(table, i));
}

// Each node's right child where its border is below v, else its left one, in this row of the tree, one of the first five.
template <int row, class Real, int n>
ARRCOMP_INLINE void descend(const StepTables& tables, U32 (&nodes)[n], const Real (&v)[n]) {
  constexpr int first = row < 4 ? 0 : 16;
  ARRCOMP_UNROLL for (int j = 0; j < n; ++j) {
    const F32 border = row == 0 ? as_float(splat<U32>(tables.tree[1])) : table_entry<16>(tables.tree + first, nodes[j]);
    const U32 left = nodes[j] + nodes[j];
    nodes[j] = select(lt(real_of(border, Real{}), v[j]), left + splat<U32>(1), left);
  }
}

// Entry [place + 32 (lower + 2 upper)] of a table, place modulo 32. Where registers are permuted, choosing among short
// tables by masks that are there already takes less than an index.
ARRCOMP_INLINE F32 entry_of_64(const uint32_t* table, U32 place, Mask upper) {
  if constexpr (chooses_tables) return select(upper, table_entry<32>(table + 32, place), table_entry<32>(table, place));
  return table_entry<64>(table, select(upper, place + splat<U32>(32), place));
}
ARRCOMP_INLINE F32 entry_of_128(const uint32_t* table, U32 place, Mask lower, Mask upper) {
  if constexpr (chooses_tables)
    return select(upper, entry_of_64(table + 64, place, lower), entry_of_64(table, place, lower));
  const U32 index = select(lower, place + splat<U32>(32), place);
  return table_entry<128>(table, select(upper, index + splat<U32>(64), index));
}

// The numbers of borders below v, which are below none if it is NaN: from row to row of the tree. Several rows of v
// together do not wait for each other.
template <class Real, int n>
ARRCOMP_INLINE void borders_below(const StepTables& tables, int rows, const Real (&v)[n], U32 (&found)[n]) {
  ARRCOMP_UNROLL for (int j = 0; j < n; ++j) found[j] = splat<U32>(1);
  descend<0>(tables, found, v);
  if (rows > 1) descend<1>(tables, found, v);
  if (rows > 2) descend<2>(tables, found, v);
  if (rows > 3) descend<3>(tables, found, v);
  if (rows > 4) descend<4>(tables, found, v);
  ARRCOMP_UNROLL for (int j = 0; j < n; ++j) found[j] = found[j] - splat<U32>(1u << (rows < 5 ? rows : 5));
  if (rows <= 5) return;
  U32 place[n];
  Mask right[n], right_of_64[n];  // whether a right child follows in the rows of 32 and of 64
  const auto turn = [&](int j, F32 border, int below) ARRCOMP_LAMBDA {
    const Mask is_right = lt(real_of(border, Real{}), v[j]);
    found[j] = select(is_right, found[j] + splat<U32>(1u << below), found[j]);
    return is_right;
  };
  ARRCOMP_UNROLL for (int j = 0; j < n; ++j) {
    place[j] = found[j];
    found[j] = place[j] << (rows - 5);
    right[j] = turn(j, table_entry<32>(tables.tree + 32, place[j]), rows - 6);
  }
  if (rows == 6) return;
  ARRCOMP_UNROLL for (int j = 0; j < n; ++j) right_of_64[j] =
      turn(j, entry_of_64(tables.tree + 64, place[j], right[j]), rows - 7);
  if (rows == 7) return;
  ARRCOMP_UNROLL for (int j = 0; j < n; ++j)
      turn(j, entry_of_128(tables.tree + 128, place[j], right[j], right_of_64[j]), 0);
}

ARRCOMP_INLINE F32 level_of(const StepTables& tables, int rows, U32 code) {
  if (rows <= 4) return table_entry<16>(tables.levels, code);
  if (rows <= 6) return table_entry<64>(tables.levels, code);
  return table_entry<256>(tables.levels, code);
}

}  // namespace arrcomp::ARRCOMP_MACHINE
