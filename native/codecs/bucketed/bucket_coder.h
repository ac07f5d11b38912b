// What a codec of buckets is on lanes, and what such codecs share. FORMAT.md, section 5.
//
// A codec is a class template over the arithmetic type of its elements (real_elements.h), from which bucket_chunks.h
// makes chunks:
//
//   Real, Scalar                 the arithmetic type and its scalars
//   Settings                     its parameters (stream/), with layout(element) and moments(). The layout's bucket_bytes
//                                are 0 if nothing is stored for buckets
//   BucketParameters             what is stored for a bucket
//   looks_up                     only there if lanes look up tables in the settings, which are then 32-bit words
//   SettingsToEncode             only there too: what a GPU makes of the settings before it encodes
//   encode_values, decode_values the scalars of a bucket that encoding or decoding an element takes, at least 1
//   store_array(settings, payload, statistics)  static, only there if array_bytes is not 0: writes what is stored once
//                                for the array at the payload's beginning, from the array's statistics, by leader()
//   Coder(settings, element, payload)  reads what is stored once from `payload`
//   fit(statistics, values) -> BucketParameters
//   store(at, parameters)  load(at) -> BucketParameters
//   fit(largest) -> row, store(at, row, n), scale_of(row, scale)  the same for up to 32 buckets at once; only there if
//                                all follows from their largest magnitudes (not finite if a value is not)
//   scale_of(parameters, scale)  the scalars that encoding takes; false if the chunk needs the slower way: `simple` is
//                                then false for all of it
//   decoded_of(parameters, decoded)  the scalars that decoding takes; true for the short way, in which `simple` is true
//   is_stochastic()              whether encoding takes random words
//   encode(x, scale, simple, random) -> U32        codes of elements; `random` is Nearest or random words
//   scaled(x, scale, simple) -> Real, encode(rows, codes)        instead of it: several rows, never stochastic
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
ARRCOMP_INLINE void store_scalars(uint8_t* at, const Number* numbers, uint32_t count) {
  memcpy(__builtin_assume_aligned(at, sizeof(Number)), numbers, count * sizeof(Number));
}

template <class Number>
ARRCOMP_INLINE void load_scalars(const uint8_t* at, Number* numbers, uint32_t count) {
  memcpy(numbers, __builtin_assume_aligned(at, sizeof(Number)), count * sizeof(Number));
}

}  // namespace arrcomp::ARRCOMP_ISA
