// The tables of a function in steps: its borders as a tree, and its levels.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "inline.h"

namespace arrcomp {

struct StepTables {
  static constexpr int max_levels = 256;
  static constexpr uint32_t no_border = 0x7f800000u;

  // Bits of float32 numbers. The last level stands again behind the last. Of the tree of borders node 1 is the root, 2i
  // and 2i + 1 are below node i, and nodes behind the last border are infinite.
  alignas(64) uint32_t levels[max_levels];
  alignas(64) uint32_t tree[max_levels];
  int bits;  // of an interval's number

  // Borders: finite and ascending in float32, one fewer than levels, which are finite.
  bool set(std::span<const double> borders, std::span<const double> given) {
    if (given.size() < 2 || given.size() > max_levels || borders.size() + 1 != given.size()) return false;
    if (!are_finite(given) || !are_finite(borders) || !are_increasing(borders)) return false;
    bits = 1;
    while (size_t{1} << bits < given.size()) ++bits;
    for (size_t i = 0; i < max_levels; ++i) levels[i] = bits_of(given[std::min(i, given.size() - 1)]);
    tree[0] = 0;
    for (size_t node = 1, depth = 0; node < max_levels; ++node) {
      if (node == size_t{2} << depth) ++depth;
      tree[node] = border_of(borders, node - (size_t{1} << depth), static_cast<int>(depth));
    }
    return true;
  }

  // The border of this rank from the tree, or no_border. The number of its node, with a bit 1 and bits 0 behind it, is
  // that of the border, counted from 1, with a bit 1 in front.
  ARRCOMP_SHARED uint32_t border(uint32_t rank) const {
    uint32_t node = rank + 1;
    if (node >= 1u << bits) return no_border;
    for (node += 1u << bits; node % 2 == 0;) node /= 2;
    return tree[node / 2];
  }

  // Lists the borders from the tree, with no_border behind them; returns how many they are.
  uint32_t list_borders(uint32_t (&borders)[max_levels]) const {
    uint32_t count = 0;
    while ((borders[count] = border(count)) != no_border) ++count;
    return count;
  }

 private:
  static uint32_t bits_of(double x) { return std::bit_cast<uint32_t>(static_cast<float>(x)); }

  static bool are_finite(std::span<const double> numbers) {
    for (const double x : numbers)
      if (!std::isfinite(static_cast<float>(x))) return false;
    return true;
  }

  static bool are_increasing(std::span<const double> numbers) {
    for (size_t i = 1; i < numbers.size(); ++i)
      if (!(static_cast<float>(numbers[i - 1]) < static_cast<float>(numbers[i]))) return false;
    return true;
  }

  // The border of the node in this column of a row of the tree.
  uint32_t border_of(std::span<const double> borders, size_t column, int depth) const {
    if (depth >= bits) return no_border;
    const size_t rank = ((2 * column + 1) << (bits - depth - 1)) - 1;
    return rank < borders.size() ? bits_of(borders[rank]) : no_border;
  }
};

}  // namespace arrcomp
