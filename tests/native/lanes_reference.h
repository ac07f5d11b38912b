// What every operation of the 32 lanes gives, by straightforward scalar code.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "lanes_inputs.h"

namespace test {

template <class T>
auto bits_of(T f) {
  if constexpr (sizeof(T) == 4)
    return std::bit_cast<uint32_t>(f);
  else
    return std::bit_cast<uint64_t>(f);
}

// One value in a slot's memory.
struct Item {
  uint64_t bits;
  int bytes;
  enum { exact, any, any_nan } allowed = exact;
};

struct Expected {
  std::vector<Item> lanes;
  uint64_t uniform = untouched * 0x0101010101010101u;
};

template <class T>
Item item(T value) {
  return {(uint64_t)value, sizeof(T)};
}
inline Item item(float value) { return {bits_of(value), 4, std::isnan(value) ? Item::any_nan : Item::exact}; }
inline Item item(double value) { return {bits_of(value), 8, std::isnan(value) ? Item::any_nan : Item::exact}; }

template <class Value>
Expected each(Value value, int n = 32) {
  Expected result;
  for (int l = 0; l < n; l++) result.lanes.push_back(item(value(l)));
  return result;
}

template <class Condition, class Value>
Expected each_if(Condition condition, Value value) {
  Expected result;
  for (int l = 0; l < 32; l++)
    result.lanes.push_back(condition(l) ? item(value(l)) : Item{0, sizeof(value(l)), Item::any});
  return result;
}

inline Expected uniform_value(uint64_t value) { return {{}, value}; }

template <class Value>
Expected mask_of(Value value) {
  uint64_t bits = 0;
  for (int l = 0; l < 32; l++) bits |= (uint64_t)value(l) << l;
  return uniform_value(bits);
}

template <class Value>
Expected or_of(Value value) {
  uint64_t all = 0;
  for (int l = 0; l < 32; l++) all |= value(l);
  return uniform_value(all);
}

// The lanes of the mask, ascending, and their number; what follows, up to 32 values in all, may be overwritten.
template <class Value>
Expected appended(uint32_t mask, Value value) {
  Expected result = uniform_value(std::popcount(mask));
  for (int l = 0; l < 32; l++) {
    if (mask >> l & 1) result.lanes.push_back(item(value(l)));
  }
  result.lanes.resize(32, Item{0, sizeof(value(0)), Item::any});
  return result;
}

inline uint8_t byte_of(const uint32_t* words, int i) { return (uint8_t)(words[i / 4] >> 8 * (i % 4)); }

// `start`, and the elements up to number i of rows that are the one and the other in turn, each with 8 `start` more.
template <class T>
T sum_of_rows(const T* even, const T* odd, T start, int i) {
  T sum = start + static_cast<T>(i + 1) * (start << 3);
  for (int row = 0; row <= i / 32; row++) {
    const T* values = row % 2 == 0 ? even : odd;
    sum = std::accumulate(values, values + std::min(i - 32 * row + 1, 32), sum);
  }
  return sum;
}

// Callers leave out NaN and what exceeds an int32.
// Of the numbers that are made of a word's bits where these are tested.
inline float near_log2_of(uint32_t x) {
  return (float)std::log2((double)std::bit_cast<float>((x & 0x3fffffff) + 0x800000));
}
inline float near_power_of(uint32_t x) {
  return (float)std::exp2((double)std::bit_cast<float>((x & 0x87ffffff) + 0x3a000000));
}
// Of half l % 2 of row l / 2, which is x (2 (l / 2) + 1) + y.
inline uint32_t largest_of_half(const uint32_t* x, const uint32_t* y, int l) {
  uint32_t largest = 0;
  for (int i = l % 2 * 16; i < l % 2 * 16 + 16; ++i) {
    const uint32_t value = x[i] * (uint32_t)(l / 2 * 2 + 1) + y[i];
    largest = value > largest ? value : largest;
  }
  return largest;
}
// Whether numbers near to it have the same upper bits.
inline bool is_clear(float f) {
  const uint32_t lower = bits_of(f) & 0xff;
  return std::fabs(f) >= 1 && lower >= 4 && lower < 0xfc;
}

inline uint32_t nearest_int(float f) { return (uint32_t)(int64_t)std::nearbyint((double)f); }

inline float value_of_half(uint32_t half) {
  int exponent = half >> 10 & 31, mantissa = half & 1023;
  double magnitude = std::ldexp(exponent ? 1024 + mantissa : mantissa, std::max(exponent, 1) - 25);
  if (exponent == 31) magnitude = mantissa ? NAN : INFINITY;
  return (float)(half >> 15 & 1 ? -magnitude : magnitude);
}

inline uint32_t half_of(float f) {
  uint32_t sign = std::signbit(f) ? 0x8000 : 0;
  if (std::isnan(f)) return sign | 0x7e00;
  double magnitude = std::fabs((double)f);
  if (magnitude >= 65520) return sign | 0x7c00;
  int exponent = magnitude < 0x1p-14 ? -14 : std::ilogb(magnitude);
  return sign | (uint32_t)((exponent + 14) * 1024 + (int)std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
}

inline uint32_t moved_by_run(const uint16_t* runs, int n, uint32_t i) {
  if (i < 1u << 15) return i;
  uint32_t cell = i / 32 % 64, move = runs[cell] % 2048;
  for (int k = 1; k < n; k++) {
    if (runs[64 * k + cell] / 2048u <= i % 32) move = runs[64 * k + cell] % 2048;
  }
  return (i + move) % 2048;
}

inline uint32_t number_below(const uint16_t* t, float f) {
  const uint32_t key = order_key(f), upper = (key / 65536 + 64) % 65536;
  uint32_t node = 1;
  for (int level = 0; level < 8; level++) node = 2 * node + (t[node] < upper ? 1 : 0);
  const uint32_t before = node % 256;
  return before + (t[256 + before] == upper && t[512 + before] < key % 65536 ? 1 : 0);
}

struct AliasSlot {
  uint32_t symbol, frequency, rank;
};
inline AliasSlot alias_slot(const uint16_t* t, uint32_t x) {
  const uint32_t bucket = x / 32 % 64, position = x % 32;
  if (position < t[bucket] / 2048u) return {bucket, t[128 + bucket], position};
  const uint32_t alias = t[bucket] % 64;
  return {alias, t[128 + alias], (position + t[64 + bucket]) % 65536};
}

// A function for each operation, and its name.
struct Operation {
  const char* name;
  Expected (*expect)(const Inputs& in);
};

#define EACH(T, ...) each([&]([[maybe_unused]] int l) -> T { return __VA_ARGS__; })
#define EACH_IF(condition, T, ...) each_if([&](int l) { return condition; }, [&](int l) -> T { return __VA_ARGS__; })
#define FIRST(T, ...) each([&](int l) -> T { return __VA_ARGS__; }, first)
#define LAST(l) (32 - first + std::min(l, first - 1))
#define MASK(...) mask_of([&](int l) { return __VA_ARGS__; })
#define OR_ALL(...) or_of([&](int l) { return __VA_ARGS__; })
#define UNIFORM(...) uniform_value(__VA_ARGS__)
#define APPENDED(mask, T, ...) appended(mask, [&](int l) -> T { return __VA_ARGS__; })
#define IN(l) (mask_word >> (l) & 1)
#define IN_OTHER(l) (other_word >> (l) & 1)
#define RANK(l) std::popcount(mask_word & ((1u << (l)) - 1))
#define COUNT uniform_value(std::popcount(mask_word))
#define OPERATION(name, isa, ...)                                                                                 \
  inline Expected expect_##name(const Inputs& in) {                                                               \
    [[maybe_unused]] const auto& [x, y, index, shifts, table, long_table, wide_x, wide_y, f, g, d, e, half_words, \
                                  short_table, runs, halves, bytes, mask_word, other_word, scalar, wide_scalar,   \
                                  float_scalar, double_scalar, k, wide_k, first] = in;                            \
    return __VA_ARGS__;                                                                                           \
  }
#include "lanes_operations.inc"
#undef OPERATION
#undef COUNT
#undef RANK
#undef IN_OTHER
#undef IN
#undef APPENDED
#undef UNIFORM
#undef OR_ALL
#undef MASK
#undef LAST
#undef FIRST
#undef EACH_IF
#undef EACH

#define OPERATION(name, ...) {#name, expect_##name},
const Operation operations[] = {
#include "lanes_operations.inc"
};
#undef OPERATION
constexpr int operation_count = sizeof operations / sizeof operations[0];

}  // namespace test
