// Numbers as unsigned keys of the same order, for atomic maxima.
#pragma once
#include <cstdint>
#include <cstring>

#include "inline.h"

namespace arrcomp::cuda {

ARRCOMP_SHARED unsigned long long order_key(double x) {
  uint64_t bits;
  memcpy(&bits, &x, 8);
  return bits >> 63 ? ~bits : bits | uint64_t{1} << 63;
}

ARRCOMP_SHARED double number_of_order_key(uint64_t key) {
  const uint64_t bits = key >> 63 ? key ^ uint64_t{1} << 63 : ~key;
  double x;
  memcpy(&x, &bits, 8);
  return x;
}

}  // namespace arrcomp::cuda
