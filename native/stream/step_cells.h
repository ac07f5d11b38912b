// Borders of a function in steps, found without a search: numbers are cut into cells, by their sign, their exponent and
// the upper bits of their mantissa, so that no cell has more than one border. A cell tells how many borders lie below
// all of it, and one comparison whether its own is below a number.
#pragma once
#include "inline.h"
#include "stream/step_tables.h"

namespace arrcomp {

struct StepCells {
  static constexpr int max_cells = 1024, max_octaves = 32, max_bits = 9;
  static constexpr int mantissa_bits = 23, no_number = 255;  // of float32, and the exponent of NaN

  // Cells that are no part of an octave.
  enum : uint32_t { near_zero, far_above, far_below, in_octaves };

  uint8_t first[max_cells];          // borders below all of a cell
  uint16_t octaves[2][max_octaves];  // of positive and of negative numbers: 16 times the first cell, plus bits
  int32_t lowest;                    // exponent of the first octave; all numbers below are near zero
  uint32_t are_set;                  // not where borders are too many, or too near to each other

  void set(const StepTables& tables) {
    uint32_t borders[StepTables::max_levels];
    const uint32_t count = tables.list_borders(borders);
    const int highest = count == 0 ? 0 : std::max(exponent_of(borders[0]), exponent_of(borders[count - 1]));
    lowest = std::max(1, highest - max_octaves + 1);
    uint32_t negative = 0, positive = 0;
    while (negative < count && is_negative(borders[negative]) && has_octave(borders[negative])) ++negative;
    while (positive < count - negative && has_octave(borders[count - 1 - positive])) ++positive;
    first[near_zero] = static_cast<uint8_t>(negative);
    first[far_above] = static_cast<uint8_t>(count);
    first[far_below] = 0;
    uint32_t next = in_octaves;
    const Side above{borders + count - positive, positive, count - positive, false}, below{borders, negative, 0, true};
    are_set = negative + positive + 1 >= count && add_octaves(above, next) && add_octaves(below, next);
  }

 private:
  // Borders of one sign that lie in octaves, of which so many others are below.
  struct Side {
    const uint32_t* borders;
    uint32_t count, others;
    bool is_negative;

    // The magnitude of the i-th from zero.
    uint32_t operator[](uint32_t i) const { return is_negative ? borders[count - 1 - i] & ~sign : borders[i]; }
  };

  static constexpr uint32_t sign = 0x80000000u;

  static bool is_negative(uint32_t border) { return (border & sign) != 0; }
  static int exponent_of(uint32_t border) { return static_cast<int>((border & ~sign) >> mantissa_bits); }
  bool has_octave(uint32_t border) const { return exponent_of(border) >= lowest; }

  // The fewest bits of the mantissa that tell the borders from the i-th to this magnitude apart, or more than max_bits.
  static int bits_for(const Side& side, uint32_t i, uint32_t end) {
    int bits = 0;
    for (; i + 1 < side.count && side[i + 1] < end; ++i)
      bits = std::max(bits, mantissa_bits + 1 - static_cast<int>(std::bit_width(side[i] ^ side[i + 1])));
    return bits;
  }

  // From the cell `next` on. False where there is no room for them.
  bool add_octaves(const Side& side, uint32_t& next) {
    uint32_t nearer = 0;  // borders between zero and a cell
    for (int i = 0; i < max_octaves; ++i) {
      uint32_t end = static_cast<uint32_t>(lowest + i) << mantissa_bits;
      const int bits = bits_for(side, nearer, end + (1u << mantissa_bits));
      const uint32_t cells = 1u << bits;
      if (bits > max_bits || next + cells > max_cells) return false;
      octaves[side.is_negative ? 1 : 0][i] = static_cast<uint16_t>(next << 4 | static_cast<uint32_t>(bits));
      for (uint32_t cell = 0; cell < cells; ++cell) {
        const uint32_t before = nearer;
        end += 1u << (mantissa_bits - bits);
        while (nearer < side.count && side[nearer] < end) ++nearer;
        first[next++] = static_cast<uint8_t>(side.is_negative ? side.count - nearer : side.others + before);
      }
    }
    return true;
  }
};

// The same as lanes look it up.
struct StepOctaves {
  static constexpr uint32_t octaves = 512, max_borders = StepTables::max_levels;

  // By sign and exponent. The cell of a number is bases[octave] + (its bits >> shifts[octave]).
  uint32_t shifts[octaves], bases[octaves];
  uint32_t borders[max_borders];  // ascending, infinite behind the last

  // Made by so many threads together, of which this is one.
  ARRCOMP_SHARED void set(const StepTables& tables, const StepCells& cells, uint32_t thread, uint32_t threads) {
    for (uint32_t octave = thread; octave < octaves; octave += threads) set_octave(cells, octave);
    for (uint32_t rank = thread; rank < max_borders; rank += threads) borders[rank] = tables.border(rank);
  }

 private:
  ARRCOMP_SHARED void set_octave(const StepCells& cells, uint32_t octave) {
    const int exponent = static_cast<int>(octave % 256), i = exponent - cells.lowest;
    const uint32_t sign = octave / 256;
    const bool is_above = sign == 0 && exponent != StepCells::no_number;
    shifts[octave] = 31;
    bases[octave] = (i < 0 ? StepCells::near_zero : is_above ? StepCells::far_above : StepCells::far_below) - sign;
    if (i < 0 || i >= StepCells::max_octaves || exponent == StepCells::no_number) return;
    const uint32_t entry = cells.octaves[sign][i], bits = entry % 16;
    shifts[octave] = StepCells::mantissa_bits - bits;
    bases[octave] = entry / 16 - (octave << bits);
  }
};

}  // namespace arrcomp
