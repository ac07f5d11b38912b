// The published codebooks by name (FORMAT.md, section 5.5).
#pragma once
#include <string_view>
#include <vector>

namespace arrcomp::c {

struct CodebookTable {
  std::vector<double> borders, levels;  // as `shortest` gives them

  bool operator==(const CodebookTable&) const = default;
};

constexpr std::string_view table_names[] = {"nf4", "dynamic8", "dynamic8-unsigned"};

// The table of one of these names.
const CodebookTable& table_named(std::string_view name);

// The number with the fewest decimal digits that rounds to the same float32; -0.0 is 0.0. Infinite beyond float32.
double shortest(double number);

}  // namespace arrcomp::c
