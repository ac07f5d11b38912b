// What the base-delta codec is asked for, and the numbers of its format (FORMAT.md, section 6).
#pragma once
#include "stream/parameters.h"
#include "stream/plan.h"
#include "stream/settings.h"

namespace arrcomp {

constexpr int rows_per_line = 2;
constexpr int lines_per_chunk = rows_per_chunk / rows_per_line;
constexpr int max_bases = 2;  // of a line, besides zero
constexpr int line_chunk_header_bytes = 4;

enum class LineChunk : uint8_t { raw = 0, lines = 1, zero = 2 };

// How a line is coded, by the number in its tag: from zero, from a base, from zero or a base, from two bases, from zero
// or two bases. The numbers are chosen so that each property is one operation.
constexpr int raw_line = 7;
constexpr int largest_line_mode = 4;
ARRCOMP_SHARED constexpr bool line_has_zero(int mode) { return mode % 2 == 0; }
ARRCOMP_SHARED constexpr int line_bases(int mode) { return (mode + 1) / 2; }
ARRCOMP_SHARED constexpr int line_selector_bits(int mode) { return mode / 2; }

// A tag has 5 bits for the deltas' width: of 64-bit elements in steps of 2.
ARRCOMP_SHARED constexpr int width_step(int element_width) { return element_width == 64 ? 2 : 1; }

enum class DropRounding : int { nearest = 0, stochastic = 1, truncate = 2 };

struct BaseDeltaSettings {
  int bases;        // at most, of a line
  uint64_t widths;  // bit d: deltas may have d bits
  int drop_bits;    // of the mantissa
  DropRounding rounding;

  bool takes(const Element& element) const {
    return drop_bits == 0 || (element.is_quantizable && drop_bits <= element.mantissa_bits);
  }

  static constexpr auto parameters() {
    using S = BaseDeltaSettings;
    return std::tuple{integer("bases", &S::bases, 1, max_bases), integer("drop_bits", &S::drop_bits, 0, 52),
                      integer("rounding", &S::rounding, 0, 2),
                      mask("widths_low", "widths_high", &S::widths, 1)};  // deltas of 0 bits may always be
  }

  GroupSettings group_settings() const { return {BoundKind::lossless, 0.0, false, false, 0.0, Predictor::none}; }
};

}  // namespace arrcomp
