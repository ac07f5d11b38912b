// A mask of the gaps of a predicted array that have the same bits, such as land in a map of the sea: its bits, one for each
// element, in the bytes of lines (FORMAT.md, section 9.5). Shared by host and device.
#pragma once
#include "stream/plan.h"
#include "stream/settings.h"

namespace arrcomp {

// Which elements are in it, and how it is coded.
struct GapMask {
  uint64_t fill;  // bits of these elements
  uint8_t axes;   // a set of those along which it is coded by differences
  bool is_given;

  ARRCOMP_SHARED bool has_differences(int axis) const { return is_in(axes, axis); }
};

// Its payload stands behind this.
struct MaskHeader {
  uint64_t fill, axes, bytes;  // `bytes`: of the payload
};
static_assert(sizeof(MaskHeader) == 24);

// How bits stand in bytes: those of a line begin with a byte. A line is one of the array's last axis, or of more of its last
// axes where these are short.
class MaskGrid {
 public:
  static constexpr uint64_t bits_of_byte = 4;         // few, so that most bytes are one of few
  static constexpr uint64_t least_line = 32;          // elements
  static constexpr uint64_t piece_size = chunk_size;  // elements of a line, between which there are no differences

  ARRCOMP_SHARED explicit MaskGrid(const Axes& axes) : bytes_(axes), line_(axes.sizes[last_axis]) {
    for (int a = last_axis; a-- > 0 && line_ < least_line;) {
      line_ *= bytes_.sizes[a];
      bytes_.sizes[a] = 1;
    }
    bytes_.sizes[last_axis] = ceil_div(line_, bits_of_byte);
  }

  // The axes of all bytes: the last one is that of a line's.
  ARRCOMP_SHARED const Axes& bytes() const { return bytes_; }
  ARRCOMP_SHARED uint64_t line() const { return line_; }

  // Whether there may be differences along all axes of a set: those of several places that lines do not have, and the last.
  ARRCOMP_SHARED bool has_axes(int set) const {
    for (int a = 0; a < last_axis; ++a)
      if (is_in(set, a) && bytes_.sizes[a] == 1) return false;
    return true;
  }

  // A piece of a line: elements [first, first + count), whose bits stand from `byte` on.
  struct Piece {
    uint64_t first, count, byte;
  };
  ARRCOMP_SHARED uint64_t pieces_of_line() const { return ceil_div(line_, piece_size); }
  ARRCOMP_SHARED uint64_t pieces() const { return bytes_.outer(last_axis) * pieces_of_line(); }
  ARRCOMP_SHARED Piece piece(uint64_t number) const {
    const uint64_t line = number / pieces_of_line(), at = number % pieces_of_line() * piece_size;
    const uint64_t left = line_ - at;
    return {line * line_ + at, left < piece_size ? left : piece_size,
            line * bytes_.sizes[last_axis] + at / bits_of_byte};
  }

  // Of the payload.
  ARRCOMP_SHARED Plan plan() const { return plan_of(bytes_.count()); }
  ARRCOMP_SHARED static Plan plan_of(uint64_t bytes) {
    return make_plan(integer_element(8, false), bytes, static_cast<uint32_t>(max_chunks_per_group));
  }

  // Bytes of an array of so many elements, at most: a line of 33 elements has 9.
  ARRCOMP_SHARED static uint64_t most_bytes(uint64_t elements) { return elements / 3 + 1; }

 private:
  static constexpr int last_axis = max_axes - 1;

  Axes bytes_;
  uint64_t line_;
};

}  // namespace arrcomp
