// What a codec of buckets is on lanes, and what such codecs share. FORMAT.md, section 5.
//
// A codec is a class template over the arithmetic type of its elements (real_elements.h), which the chunks
// (bucket_chunks.h) are made of:
//
//   Real, Scalar                 the arithmetic type and its scalars
//   Settings                     its parameters (stream/), with layout(element), of which bucket_bytes is 0 if nothing is
//                                stored for buckets, and moments()
//   Numbers                      what is stored for a bucket
//   looks_up                     there only if lanes look up tables in the settings, which are then of 32-bit words
//   encode_values, decode_values how many scalars encoding, or decoding, an element takes of its bucket (at least 1)
//   store_array(settings, payload, statistics)  static, only where array_bytes is not 0: writes what is stored once for
//                                the array at the payload's beginning, from the statistics of the array, by leader()
//   Coder(settings, element, payload)  `payload`: from where what is stored once can be read
//   numbers_of(statistics, values)     of a bucket
//   store(at, numbers) load(at)
//   numbers_of(largest) -> row, store(at, row, n), scale_of(row, scale)  the same of up to 32 buckets at once; only where
//                                all follows from their largest magnitudes (not finite ones where a value is not finite)
//   scale_of(numbers, scale)     what encoding takes; false where it takes the slower way, `simple` is then false for
//                                all of the chunk
//   decoded_of(numbers, decoded) what decoding takes; true where it takes the short way, `simple` is then true
//   is_stochastic()              whether encoding takes random words
//   encode(x, scale, simple, random) -> U32        codes of elements; `random` is Nearest or random words
//   scaled(x, scale, simple) -> Real, encode(rows, codes)        in place of it: rows together, never at random
//   decode(code, decoded, simple) -> Real          elements, before they are rounded to their type; NaN is the quiet one
#pragma once
#include <cstring>

#include "codecs/bucketed/bucket_statistics.h"
#include "codecs/numeric/philox.h"
#include "codecs/numeric/scalars.h"
#include "codecs/packing.h"
#include "codecs/value_range.h"

namespace arrcomp::ARRCOMP_ISA {

// The codec that has these settings, in this arithmetic type: specialized with each codec.
template <class Settings, class Real>
struct CoderOf;

// A bucket's values: elements [first, first + count) of the array.
struct BucketValues {
  const Element& element;
  const void* array;
  uint64_t first, count;
  uint64_t seed;
};

template <class Number>
ARRCOMP_INLINE void store_numbers(uint8_t* at, const Number* numbers, uint32_t count) {
  memcpy(__builtin_assume_aligned(at, sizeof(Number)), numbers, count * sizeof(Number));
}

template <class Number>
ARRCOMP_INLINE void load_numbers(const uint8_t* at, Number* numbers, uint32_t count) {
  memcpy(numbers, __builtin_assume_aligned(at, sizeof(Number)), count * sizeof(Number));
}

}  // namespace arrcomp::ARRCOMP_ISA
