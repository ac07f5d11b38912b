// Functions in steps on lanes: which interval a number lies in, and that interval's level.
#pragma once
#include "inline.h"
#include "lanes/lanes.h"
#include "stream/even_step_cells.h"
#include "stream/step_cells.h"
#include "stream/step_halves.h"

namespace arrcomp::ARRCOMP_ISA {

ARRCOMP_INLINE F32 real_of(F32 x, F32) { return x; }
ARRCOMP_INLINE F64 real_of(F32 x, F64) { return to_double(x); }

template <int size>
ARRCOMP_INLINE F32 table_entry(const uint32_t* table, U32 i) {
  return as_float(lookup<size>(table, i));
}

// Whether it takes less to choose among the entries of short tables by masks than to look up a long one.
constexpr bool chooses_entries = rows_side_by_side > 1;

// The way to a node: whether the first turn was to the right, and the second.
struct FirstTurns {
  Mask turns[2] = {mask(0), mask(0)};
};

// Entry `i` of 64, of which the upper bit is known.
ARRCOMP_INLINE F32 entry_of_64(const uint32_t* table, U32 i, Mask upper) {
  return select(upper, table_entry<32>(table + 32, i), table_entry<32>(table, i));
}

// The border of a node in this row of the tree: the upper bits of its number are the first turns.
template <int row>
ARRCOMP_INLINE F32 border_of(const uint32_t* tree, U32 node, const FirstTurns& first) {
  constexpr int nodes = 1 << row, size = nodes < 16 ? 16 : nodes;
  const uint32_t* const table = tree + (nodes < 16 ? 0 : nodes);
  if constexpr (row == 0) {
    return as_float(splat<U32>(tree[1]));
  } else if constexpr (row < 6 || !chooses_entries) {
    return table_entry<size>(table, node);
  } else if constexpr (row == 6) {
    return entry_of_64(table, node, first.turns[0]);
  } else {
    const Mask* const turns = first.turns;
    return select(turns[0], entry_of_64(table + 64, node, turns[1]), entry_of_64(table, node, turns[1]));
  }
}

// From nodes of this row of the tree to their children: the right ones where the borders are below v.
template <int row, class Real, int n>
ARRCOMP_INLINE void descend(const StepTables& tables, U32 (&nodes)[n], FirstTurns (&first)[n], const Real (&v)[n]) {
  ARRCOMP_UNROLL for (int j = 0; j < n; ++j) {
    const Mask is_right = lt(real_of(border_of<row>(tables.tree, nodes[j], first[j]), Real{}), v[j]);
    const U32 left = nodes[j] + nodes[j];
    nodes[j] = select(is_right, left + splat<U32>(1), left);
    if (row < 2) first[j].turns[row < 2 ? row : 0] = is_right;
  }
}

// The numbers of borders below v, which are below none if it is NaN: from row to row of the tree. Several v at once do
// not wait for each other.
template <class Real, int n>
ARRCOMP_INLINE void borders_below(const StepTables& tables, int rows, const Real (&v)[n], U32 (&found)[n]) {
  FirstTurns first[n];
  ARRCOMP_UNROLL for (int j = 0; j < n; ++j) found[j] = splat<U32>(1);
  descend<0>(tables, found, first, v);
  if (rows > 1) descend<1>(tables, found, first, v);
  if (rows > 2) descend<2>(tables, found, first, v);
  if (rows > 3) descend<3>(tables, found, first, v);
  if (rows > 4) descend<4>(tables, found, first, v);
  if (rows > 5) descend<5>(tables, found, first, v);
  if (rows > 6) descend<6>(tables, found, first, v);
  if (rows > 7) descend<7>(tables, found, first, v);
  ARRCOMP_UNROLL for (int j = 0; j < n; ++j) found[j] = found[j] - splat<U32>(1u << rows);
}

// Whether a few lookups anywhere in a memory that is near take less than a search from row to row.
constexpr bool looks_up_cells = rows_at_once == 1;

// The same of v that are no infinities, from their cells.
template <int n>
ARRCOMP_INLINE void borders_below(const StepCells& cells, const StepOctaves& octaves, const F32 (&v)[n],
                                  U32 (&found)[n]) {
  ARRCOMP_UNROLL for (int j = 0; j < n; ++j) {
    const U32 bits = as_bits(v[j]), octave = bits >> StepCells::mantissa_bits;
    const U32 cell = srlv(bits, gather(octaves.shifts, octave)) + gather(octaves.bases, octave);
    const U32 first = gather(cells.first, cell);
    const Mask is_above = lt(as_float(gather(octaves.borders, first)), v[j]);
    found[j] = first + select(is_above, splat<U32>(1), splat<U32>(0));
  }
}

// Whether one lookup in a table that is far longer takes less than a search.
constexpr bool looks_up_even_cells = !looks_up_cells && !chooses_entries;

template <int n>
ARRCOMP_INLINE void borders_below(const EvenStepCells& cells, const F32 (&v)[n], U32 (&found)[n]) {
  const U32 least = splat<U32>(cells.least), span = splat<U32>(cells.span);
  ARRCOMP_UNROLL for (int j = 0; j < n; ++j) {
    // NaN becomes the lowest number, and both zeros are positive.
    const U32 bits = as_bits(min(splat<F32>(0x1.fffffep127f), splat<F32>(0) - v[j]));
    const U32 from_least = min(max(bits & splat<U32>(~0u >> 1), least) - least, span - splat<U32>(1));
    const U32 place = span + (from_least ^ sar(bits, 31));
    found[j] = (gather(cells.words, place >> cells.shift) - place) >> cells.shift;
  }
}

// Whether numbers of 16 bits are searched in less time: twice as many of them are in a register.
constexpr bool searches_halves = wide_permutations;

template <int n>
ARRCOMP_INLINE void borders_below(const StepHalves& halves, const F32 (&v)[n], U32 (&found)[n]) {
  numbers_below(halves.words, v, found);
}

ARRCOMP_INLINE F32 level_of(const StepTables& tables, int rows, U32 code) {
  if (rows <= 4) return table_entry<16>(tables.levels, code);
  if (rows <= 6) return table_entry<64>(tables.levels, code);
  return table_entry<256>(tables.levels, code);
}

}  // namespace arrcomp::ARRCOMP_ISA
