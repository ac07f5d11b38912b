// What the coder must know of a data type: FORMAT.md, section 2.
#pragma once
#include <cstdint>

#include "inline.h"

namespace arrcomp {

struct Element {
  uint8_t width;          // bits
  uint8_t exponent_bits;  // 0: an integer
  uint8_t mantissa_bits;
  bool is_signed;       // integers only
  bool is_quantizable;  // error bounds are offered for it

  ARRCOMP_SHARED constexpr bool is_float() const { return exponent_bits != 0; }
};

constexpr int dtype_count = 29;  // ids 1 to 28

ARRCOMP_SHARED constexpr Element integer_element(int width, bool is_signed) {
  return {static_cast<uint8_t>(width), 0, 0, is_signed, false};
}

ARRCOMP_SHARED constexpr Element float_element(int exponent_bits, int mantissa_bits) {
  const int width = 1 + exponent_bits + mantissa_bits;
  return {static_cast<uint8_t>(width), static_cast<uint8_t>(exponent_bits), static_cast<uint8_t>(mantissa_bits), true,
          width >= 16};
}

constexpr Element elements[dtype_count] = {
    {},                         // 0 is no dtype
    integer_element(8, false),  // bool
    integer_element(8, true),
    integer_element(8, false),
    integer_element(16, true),
    integer_element(16, false),
    integer_element(32, true),
    integer_element(32, false),
    integer_element(64, true),
    integer_element(64, false),
    float_element(5, 10),       // float16
    float_element(8, 7),        // bfloat16
    float_element(8, 23),       // float32
    float_element(11, 52),      // float64
    float_element(8, 23),       // complex64
    float_element(11, 52),      // complex128
    float_element(4, 3),        // float8_e4m3fn
    float_element(5, 2),        // float8_e5m2
    float_element(4, 3),        // float8_e4m3fnuz
    float_element(5, 2),        // float8_e5m2fnuz
    float_element(4, 3),        // float8_e4m3b11fnuz
    float_element(4, 3),        // float8_e4m3
    float_element(3, 4),        // float8_e3m4
    integer_element(8, false),  // float8_e8m0fnu: an exponent alone
    integer_element(8, false),  // float4_e2m1fn
    integer_element(8, false),  // float6_e2m3fn
    integer_element(8, false),  // float6_e3m2fn
    integer_element(8, true),   // int4
    integer_element(8, false),  // uint4
};

ARRCOMP_SHARED constexpr bool is_dtype(int id) { return id > 0 && id < dtype_count; }

}  // namespace arrcomp
