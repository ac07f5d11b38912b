// Data types of values, by their ids (FORMAT.md, section 2); stream/element.h has their elements.
#pragma once
#include <cstdint>

#include "stream/element.h"

namespace arrcomp::c {

constexpr const char* dtype_names[] = {
    "",
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "float8_e4m3b11fnuz",
    "float8_e4m3",
    "float8_e3m4",
    "float8_e8m0fnu",
    "float4_e2m1fn",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "int4",
    "uint4",
};
static_assert(sizeof dtype_names / sizeof *dtype_names == dtype_count);

// Elements of a value: a complex one is two.
constexpr uint64_t parts_of(int dtype_id) { return dtype_id == 14 || dtype_id == 15 ? 2 : 1; }

}  // namespace arrcomp::c
