// Functions in steps on lanes: which interval a number lies in, and that interval's level.
#pragma once
#include "inline.h"
#include "lanes/lanes.h"
#include "stream/step_tables.h"

namespace arrcomp::ARRCOMP_MACHINE {

ARRCOMP_INLINE F32 real_of(F32 x, F32) { return x; }
ARRCOMP_INLINE F64 real_of(F32 x, F64) { return to_double(x); }

template <int size>
ARRCOMP_INLINE F32 table_entry(const uint32_t* table, U32 i) {
  return as_float(lookup<size>(table, i));
}

// The right one of the two nodes below a node of this row of the tree where its border is below v.
template <int row, class Real>
ARRCOMP_INLINE U32 child(const StepTables& tables, U32 node, Real v) {
  constexpr int nodes = 1 << row, first = nodes < 16 ? 0 : nodes, size = nodes < 16 ? 16 : nodes;
  const F32 border = row == 0 ? as_float(splat<U32>(tables.tree[1])) : table_entry<size>(tables.tree + first, node);
  const U32 left = node + node;
  return select(lt(real_of(border, Real{}), v), left + splat<U32>(1), left);
}

// The number of borders below v, which is below none if it is NaN: from row to row of the tree.
template <class Real>
ARRCOMP_INLINE U32 borders_below(const StepTables& tables, int rows, Real v) {
  U32 node = child<0>(tables, splat<U32>(1), v);
  if (rows > 1) node = child<1>(tables, node, v);
  if (rows > 2) node = child<2>(tables, node, v);
  if (rows > 3) node = child<3>(tables, node, v);
  if (rows > 4) node = child<4>(tables, node, v);
  if (rows > 5) node = child<5>(tables, node, v);
  if (rows > 6) node = child<6>(tables, node, v);
  if (rows > 7) node = child<7>(tables, node, v);
  return node - splat<U32>(1u << rows);
}

ARRCOMP_INLINE F32 level_of(const StepTables& tables, int rows, U32 code) {
  if (rows <= 4) return table_entry<16>(tables.levels, code);
  if (rows <= 6) return table_entry<64>(tables.levels, code);
  return table_entry<256>(tables.levels, code);
}

}  // namespace arrcomp::ARRCOMP_MACHINE
