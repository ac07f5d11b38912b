// Powers of two as numbers, of any exponent. Shared by host and device.
#pragma once
#include <cstdint>
#include <cstring>

#include "inline.h"

namespace arrcomp {

// 2^e, or 0 below the smallest number and the largest power of two above it.
ARRCOMP_SHARED double power_of_two(int e) {
  if (e < -1074) return 0;
  if (e < -1022) return 0x1p-1022 * static_cast<double>(uint64_t{1} << (e + 1074)) * 0x1p-52;
  const uint64_t bits = static_cast<uint64_t>((e > 1023 ? 1023 : e) + 1023) << 52;
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

// The greatest e with 2^e <= x, of a finite number above 0.
ARRCOMP_SHARED int exponent_of(double x) {
  const bool tiny = x < 0x1p-1022;
  if (tiny) x *= 0x1p64;
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return static_cast<int>(bits >> 52) - (tiny ? 1023 + 64 : 1023);
}

// x * 2^e. In two steps, as 2^e alone may not be a number.
ARRCOMP_SHARED double times_power_of_two(double x, int e) {
  const int half = e / 2;
  return x * power_of_two(half) * power_of_two(e - half);
}

}  // namespace arrcomp
