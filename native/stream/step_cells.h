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
  uint32_t are_set;                  // 0 where borders are too many, or too near to each other

  // From borders as StepTables takes them.
  void set(std::span<const double> given) {
    float numbers[StepTables::max_levels];
    std::ranges::transform(given, numbers, [](double x) { return static_cast<float>(x); });
    const Borders borders(numbers, given.size());
    int highest = 0;
    for (const float x : borders) highest = std::max(highest, exponent_of(x));
    lowest = std::max(1, highest - max_octaves + 1);
    std::ranges::fill(first, uint8_t{0});
    first[near_zero] = below(borders, -number((static_cast<uint32_t>(lowest) << mantissa_bits) - 1));
    first[far_above] = static_cast<uint8_t>(borders.size());
    are_set = std::ranges::count_if(borders, [&](float x) { return exponent_of(x) < lowest; }) <= 1;
    uint32_t next = in_octaves;
    for (const bool is_negative : {false, true})
      for (int i = 0; i < max_octaves && are_set; ++i) are_set = add_octave(borders, is_negative, i, next);
  }

 private:
  using Borders = std::span<const float>;

  static float number(uint32_t bits) { return std::bit_cast<float>(bits); }
  static uint32_t magnitude_of(float x) { return std::bit_cast<uint32_t>(x) & 0x7fffffffu; }
  static int exponent_of(float x) { return static_cast<int>(magnitude_of(x) >> mantissa_bits); }

  static uint8_t below(Borders borders, float x) {
    return static_cast<uint8_t>(std::ranges::lower_bound(borders, x) - borders.begin());
  }

  // The fewest bits of the mantissa that tell an octave's borders apart, or more than max_bits.
  static int bits_for(Borders borders, bool is_negative, int exponent) {
    int bits = 0;
    const float* before = nullptr;
    for (const float& x : borders) {
      if (exponent_of(x) != exponent || (x < 0) != is_negative) continue;
      const auto cell_of = [&](float y) { return magnitude_of(y) >> (mantissa_bits - bits); };
      while (before != nullptr && bits <= max_bits && cell_of(*before) == cell_of(x)) ++bits;
      before = &x;
    }
    return bits;
  }

  // From the cell `next` on. False where there is no room for it.
  bool add_octave(Borders borders, bool is_negative, int i, uint32_t& next) {
    const int bits = bits_for(borders, is_negative, lowest + i);
    const uint32_t cells = 1u << bits;
    if (bits > max_bits || next + cells > max_cells) return false;
    octaves[is_negative ? 1 : 0][i] = static_cast<uint16_t>(next << 4 | static_cast<uint32_t>(bits));
    const uint32_t size = 1u << (mantissa_bits - bits);
    uint32_t begin = static_cast<uint32_t>(lowest + i) << mantissa_bits;
    for (uint32_t cell = 0; cell < cells; ++cell, ++next, begin += size)
      first[next] = below(borders, is_negative ? -number(begin + size - 1) : number(begin));
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
    for (uint32_t rank = thread; rank < max_borders; rank += threads) borders[rank] = border(tables, rank);
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

  // From the tree: the number of its node, with a bit 1 and bits 0 behind it, is that of the border, counted from 1, with
  // a bit 1 in front.
  ARRCOMP_SHARED static uint32_t border(const StepTables& tables, uint32_t rank) {
    uint32_t node = rank + 1;
    if (node >= 1u << tables.bits) return 0x7f800000u;
    for (node += 1u << tables.bits; node % 2 == 0;) node /= 2;
    return tables.tree[node / 2];
  }
};

}  // namespace arrcomp
