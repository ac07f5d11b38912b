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
//   WithTables, min_chunks       only where `has_tables` is true: the coder of a CPU that encodes so many chunks at least,
//                                with Settings that are made of the codec's, and are to be used where they `fit`; or
//                                that decodes as many, where `decodes_by_tables` is true
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
//   guess(x, scale, doubtful) -> U32, encode_exactly(x, scale, simple, random)  only where `guesses` is true: most codes of
//                                simple buckets, never stochastic, with a mask of lanes to encode exactly
//   EncodeTable, fill(table, bucket, scale)  only where `guesses_rows` is true: table.find(x, random, codes, margins) of
//                                rows in a simple bucket, codes as the highest bytes of words; margins are
//                                table.widest(random) before, and where they become such that table.is_in_doubt(margins),
//                                rows are encoded as others are
//   has_extra(code) -> Mask      only there if codes have bits above code_bits: whether a code does
//   tabulates, tabulates_near    whether decoded elements are looked up (decode_table.h)
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

// The first `count` of some numbers.
template <class Number, int n>
ARRCOMP_INLINE void store_scalars(uint8_t* at, const Number (&numbers)[n], uint32_t count) {
  auto* const to = static_cast<Number*>(__builtin_assume_aligned(at, sizeof(Number)));
  ARRCOMP_UNROLL for (uint32_t i = 0; i < n; ++i) if (i < count) memcpy(to + i, numbers + i, sizeof(Number));
}

template <class Number, int n>
ARRCOMP_INLINE void load_scalars(const uint8_t* at, Number (&numbers)[n], uint32_t count) {
  const auto* const from = static_cast<const Number*>(__builtin_assume_aligned(at, sizeof(Number)));
  ARRCOMP_UNROLL for (uint32_t i = 0; i < n; ++i) if (i < count) memcpy(numbers + i, from + i, sizeof(Number));
}

template <class Number>
ARRCOMP_INLINE void store_scalar(uint8_t* at, Number number) {
  memcpy(__builtin_assume_aligned(at, sizeof(Number)), &number, sizeof(Number));
}

template <class Number>
ARRCOMP_INLINE Number load_scalar(const uint8_t* at) {
  Number number;
  memcpy(&number, __builtin_assume_aligned(at, sizeof(Number)), sizeof(Number));
  return number;
}

// The k-th number of each of n buckets, which have so many.
template <class Real>
ARRCOMP_METHOD Real load_scalar_row(const uint8_t* at, int n, int numbers, int k) {
  const U32 bucket = min(lane_numbers(), splat<U32>(static_cast<uint32_t>(n - 1)));
  const U32 place = bucket * splat<U32>(static_cast<uint32_t>(numbers)) + splat<U32>(static_cast<uint32_t>(k));
  return as_float(gather(reinterpret_cast<const uint32_t*>(at), place));
}

// Writes two numbers of each of n buckets. `memory` has room for two rows.
template <class Real>
ARRCOMP_METHOD void store_pairs(uint8_t* at, Real first, Real second, int n, typename Real::scalar* memory) {
  store(memory, first);
  store(memory + lanes_per_row, second);
  sync();
  auto* const out = reinterpret_cast<uint32_t*>(at);
  const auto* const words = reinterpret_cast<const uint32_t*>(memory);
  const U32 place = (lane_numbers() & splat<U32>(1)) * splat<U32>(lanes_per_row) + (lane_numbers() >> 1);
  store_row(out, gather(words, place), n < lanes_per_row / 2 ? 2 * n : lanes_per_row);
  if (n <= lanes_per_row / 2) return;
  store_row(out + lanes_per_row, gather(words + lanes_per_row / 2, place), 2 * n - lanes_per_row);
}

}  // namespace arrcomp::ARRCOMP_ISA
