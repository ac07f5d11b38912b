#include "c/codebook_tables.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "c/json.h"

namespace arrcomp::c {
namespace {

// T. Dettmers et al., "QLoRA", arXiv:2305.14314, appendix E.
constexpr double nf4_levels[] = {-1.0,         -0.6961928, -0.52507305, -0.3949175, -0.28444138, -0.18477343,
                                 -0.091050036, 0.0,        0.0795803,   0.1609302,  0.2461123,   0.33791524,
                                 0.44070983,   0.562617,   0.72295684,  1.0};

// T. Dettmers et al., arXiv:2110.02861, section 2.1: the decades from 10^-7 to 1, the lowest with `first` numbers, each
// with twice as many as the one below it: midpoints of equal intervals.
std::vector<double> decades(uint32_t first) {
  std::vector<double> numbers;
  double unit = 1e7;
  for (uint32_t n = first; unit >= 10; n *= 2, unit /= 10)
    for (uint32_t k = 0; k < n; ++k) numbers.push_back((2.0 * n + 9.0 * (2 * k + 1)) / (2.0 * n * unit));
  return numbers;
}

// The midpoint, rounded down to float32.
double border_between(double lower, double upper) {
  const double middle = (static_cast<double>(static_cast<float>(lower)) + static_cast<float>(upper)) / 2;
  auto border = static_cast<float>(middle);
  if (border > middle) border = std::nextafter(border, -std::numeric_limits<float>::infinity());
  return shortest(border);
}

CodebookTable table_of(std::vector<double> levels) {
  for (double& level : levels) level = shortest(level);
  std::vector<double> borders;
  for (size_t i = 1; i < levels.size(); ++i) borders.push_back(border_between(levels[i - 1], levels[i]));
  return {std::move(borders), std::move(levels)};
}

CodebookTable dynamic8() {
  const std::vector<double> sizes = decades(1);
  std::vector<double> levels;
  std::transform(sizes.rbegin(), sizes.rend(), std::back_inserter(levels), [](double size) { return -size; });
  levels.push_back(0);
  levels.insert(levels.end(), sizes.begin(), sizes.end());
  levels.push_back(1);
  return table_of(std::move(levels));
}

// For second moments, which are divisors: nothing above 0 gets the level 0.
CodebookTable unsigned_dynamic8() {
  std::vector<double> levels = decades(2);
  levels.insert(levels.begin(), 0);
  levels.push_back(1);
  CodebookTable table = table_of(std::move(levels));
  table.borders[0] = 0;
  return table;
}

}  // namespace

const CodebookTable& table_named(std::string_view name) {
  static const CodebookTable nf4 = table_of({std::begin(nf4_levels), std::end(nf4_levels)});
  static const CodebookTable with_signs = dynamic8(), without_signs = unsigned_dynamic8();
  if (name == "nf4") return nf4;
  return name == "dynamic8" ? with_signs : without_signs;
}

double shortest(double number) {
  const auto single = static_cast<float>(number);
  if (!std::isfinite(single)) return std::copysign(std::numeric_limits<double>::infinity(), number);
  char digits[32];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, single);
  return json::number_of({digits, end}) + 0.0;
}

}  // namespace arrcomp::c
