// Borders of a function in steps, found by one lookup: cells have the same number of bits of the mantissa each, and a
// word that tells what lies below all of the cell and where in it the one border is that it may have.
#pragma once
#include "stream/step_tables.h"

namespace arrcomp {

// Numbers v have places, which fall as v rises, and of which those of 0 and of all that is nearer to it than the nearest
// border are in the middle: with m the bits of |v|, clamped to at least `least` and to less than `least` + `span`, that
// of v is span + (m - least), or span - 1 - (m - least) above 0. So many borders are below v: the word of its cell less
// its place, shifted right by `shift`.
struct EvenStepCells {
  static constexpr uint32_t max_cells = 4096;
  static constexpr int min_bits = 6;  // of an interval's number: a search among fewer borders takes less

  uint32_t words[max_cells];
  uint32_t least, span;
  int shift;

  // False where borders are too many or too few, or too near to each other.
  bool set(const StepTables& tables) {
    if (tables.bits < min_bits) return false;
    uint32_t borders[StepTables::max_levels];
    const uint32_t count = tables.list_borders(borders);
    for (shift = mantissa_bits; shift >= mantissa_bits - max_mantissa_bits; --shift) {
      if (set_range(borders, count) && are_apart(borders, count)) {
        fill(borders, count);
        return true;
      }
    }
    return false;
  }

 private:
  static constexpr int mantissa_bits = 23, max_mantissa_bits = 9;
  static constexpr uint32_t sign = 0x80000000u;

  static uint32_t magnitude(uint32_t border) { return border & ~sign; }
  uint32_t cells() const { return 2 * (span >> shift); }

  uint32_t place(uint32_t border) const {
    const uint32_t m = magnitude(border), from_least = m > least ? m - least : 0;
    return border > 0 && border < sign ? span - 1 - from_least : span + from_least;
  }

  // Cells that tell all borders but 0 from 0, and from numbers beyond.
  bool set_range(const uint32_t* borders, uint32_t count) {
    uint32_t nearest = StepTables::no_border, farthest = 0;
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t m = magnitude(borders[i]);
      if (m > 0) nearest = std::min(nearest, m);
      farthest = std::max(farthest, m);
    }
    least = (nearest - 1) >> shift << shift;
    const uint32_t half = farthest < least ? 1 : ((farthest + 1 - least) >> shift) + 1;
    span = half << shift;
    return 2 * half <= max_cells;
  }

  bool are_apart(const uint32_t* borders, uint32_t count) const {
    for (uint32_t i = 1; i < count; ++i)
      if (place(borders[i]) >> shift == place(borders[i - 1]) >> shift) return false;
    return true;
  }

  // From the lowest numbers on, which are in the last cell.
  void fill(const uint32_t* borders, uint32_t count) {
    uint32_t below = 0;
    for (uint32_t cell = cells(); cell-- > 0;) {
      const bool has_border = below < count && place(borders[below]) >> shift == cell;
      words[cell] = has_border ? ((below + 1) << shift) + place(borders[below]) - 1
                               : (below << shift) + ((cell + 1) << shift) - 1;
      if (has_border) ++below;
    }
  }
};

}  // namespace arrcomp
