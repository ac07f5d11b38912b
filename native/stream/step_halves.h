// Borders of a function in steps as lanes of 16 bits search them: first their upper halves, then a lower one.
#pragma once
#include "stream/step_tables.h"

namespace arrcomp {

// What numbers_below of the lanes looks up: the upper halves of the borders' keys as a tree, as StepTables has them, then
// one after the other, and the lower halves. Keys are words whose order is that of the borders.
struct StepHalves {
  static constexpr int bits = 8;  // of an interval's number: fewer borders are searched as they are

  alignas(64) uint16_t words[3][StepTables::max_levels];

  // False where borders are too few, or two have the same upper half.
  bool set(const StepTables& tables) {
    if (tables.bits != bits) return false;
    uint32_t borders[StepTables::max_levels];
    const uint32_t count = tables.list_borders(borders);
    for (uint32_t i = 0; i < StepTables::max_levels; ++i) {
      const uint32_t border = i < count ? borders[i] : StepTables::no_border;
      words[0][i] = upper(tables.tree[i]);
      words[1][i] = upper(border);
      words[2][i] = static_cast<uint16_t>(key(border));
      if (0 < i && i < count && words[1][i] == words[1][i - 1]) return false;
    }
    return true;
  }

 private:
  static constexpr uint32_t sign = 0x80000000u;

  // Of -0 that of 0: numbers below are the same.
  static uint32_t key(uint32_t border) {
    if (border == sign) return sign;
    return (border & sign) == 0 ? border | sign : ~border;
  }
  // Plus 64, by which NaN comes to be below all numbers.
  static uint16_t upper(uint32_t border) { return static_cast<uint16_t>((key(border) >> 16) + 64); }
};

}  // namespace arrcomp
