// Checks of codecs' parameters, which their Python classes give as numbers (core_parameters).
#pragma once
#include <cstdint>
#include <span>

namespace arrcomp {

inline bool is_flag(double x) { return x == 0 || x == 1; }

inline bool is_integer(double x, double least, double most) {
  return x >= least && x <= most && x == static_cast<double>(static_cast<int64_t>(x));
}

}  // namespace arrcomp
