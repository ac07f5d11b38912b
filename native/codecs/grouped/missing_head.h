// What is said of a chunk's missing elements (FORMAT.md, section 3.5).
#pragma once

namespace arrcomp {

struct MissingHead {
  int present;    // elements that are not missing
  int marks;      // positions or edges
  bool edges;     // marks are where missing elements begin or end; else they are where these are
  bool inverted;  // or where the others are; before the first edge elements are missing
  int shift;      // low bits of a mark that are stored as they are; or shift_of_bits
};

}  // namespace arrcomp
