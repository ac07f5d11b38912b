// How far apart the smallest and the largest of n normal values are expected to be (L. H. C. Tippett, "On the extreme
// individuals and the range of samples taken from a normal population", Biometrika 17, 1925).
#pragma once
#include <cstdint>

#include "lanes/lanes.h"

namespace arrcomp::ARRCOMP_ISA {

// In standard deviations, for n of 2 to 2^60: the integral of 1 - Phi(x)^n - (1 - Phi(x))^n over all x, at powers of two
// from the table, between them by the logarithm of n, which a parabola gives well enough: within 1.1 percent.
ARRCOMP_INLINE double expected_range(uint64_t n) {
  constexpr int last = 60;
  static constexpr double at_power_of_two[last] = {
      1.1284, 2.0588, 2.8472, 3.5320, 4.1393, 4.6875, 5.1892, 5.6537, 6.0878, 6.4965, 6.8836, 7.2522,
      7.6046, 7.9427, 8.2682, 8.5823, 8.8861, 9.1806, 9.4665, 9.7446, 10.015, 10.280, 10.537, 10.790,
      11.036, 11.278, 11.514, 11.747, 11.974, 12.198, 12.418, 12.634, 12.847, 13.057, 13.263, 13.466,
      13.666, 13.864, 14.059, 14.251, 14.441, 14.628, 14.813, 14.996, 15.177, 15.356, 15.533, 15.707,
      15.880, 16.051, 16.221, 16.388, 16.554, 16.719, 16.882, 17.043, 17.203, 17.361, 17.518, 17.674};
  int power = 1;
  while (power < last && n >> power > 1) ++power;
  if (power == last) return at_power_of_two[last - 1];
  const double fraction = static_cast<double>(n) / static_cast<double>(uint64_t{1} << power) - 1;
  const double logarithm = fraction * (1.3465 - 0.3465 * fraction);
  const double lower = at_power_of_two[power - 1];
  return lower + logarithm * (at_power_of_two[power] - lower);
}

}  // namespace arrcomp::ARRCOMP_ISA
