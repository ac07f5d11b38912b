// The element types on lanes: how their bits become words and, where error bounds are offered, numbers to calculate
// with.
#pragma once
#include "inline.h"
#include "lanes/lanes.h"
#include "stream/constants.h"
#include "stream/element.h"

namespace arrcomp::ARRCOMP_ISA {

template <class Storage, class WordType>
struct BitsOnly {
  using storage = Storage;
  using Word = WordType;
  static constexpr int width = sizeof(Storage) * 8;
  static constexpr int word_bits = sizeof(typename Word::scalar) * 8;
};

struct Bits8 : BitsOnly<uint8_t, U32> {
  static constexpr bool quantizes = false;
};

// Float types add: Real, the type that bounds are checked in; widen (exact) and narrow (to nearest even) between bits
// and Real; the largest finite number; epsilon, the distance from 1 to the next; and the quantizer's step as a multiple
// of the bound: 2, less room for the rounding of the result where its mantissa is short.
struct Float16 : BitsOnly<uint16_t, U32> {
  using Real = F32;
  static constexpr float steps_per_bound = 1.875f;
  static constexpr float largest = 65504;
  static constexpr double epsilon = 0x1p-10;
  static constexpr bool quantizes = true;
  ARRCOMP_METHOD static F32 widen(U32 bits) { return from_half(bits); }
  ARRCOMP_METHOD static U32 narrow(F32 y) { return to_half(y); }
};

struct BFloat16 : BitsOnly<uint16_t, U32> {
  using Real = F32;
  static constexpr float steps_per_bound = 1.75f;
  static constexpr float largest = 0x1.fep127f;
  static constexpr double epsilon = 0x1p-7;
  static constexpr bool quantizes = true;
  ARRCOMP_METHOD static F32 widen(U32 bits) { return as_float(bits << 16); }
  // Infinities, after an overflow, stay. NaN is the quiet one, if any, which stays too.
  ARRCOMP_METHOD static U32 narrow(F32 y) {
    const U32 bits = as_bits(y);
    return (bits + splat<U32>(0x7fff) + (bits >> 16 & splat<U32>(1))) >> 16;
  }
};

struct Float32 : BitsOnly<uint32_t, U32> {
  using Real = F32;
  static constexpr float steps_per_bound = 2;
  static constexpr float largest = 0x1.fffffep127f;
  static constexpr double epsilon = 0x1p-23;
  static constexpr bool quantizes = true;
  ARRCOMP_METHOD static F32 widen(U32 bits) { return as_float(bits); }
  ARRCOMP_METHOD static U32 narrow(F32 y) { return as_bits(y); }
};

struct Float64 : BitsOnly<uint64_t, U64> {
  using Real = F64;
  static constexpr double steps_per_bound = 2;
  static constexpr double largest = 0x1.fffffffffffffp1023;
  static constexpr double epsilon = 0x1p-52;
  static constexpr bool quantizes = true;
  ARRCOMP_METHOD static F64 widen(U64 bits) { return as_double(bits); }
  ARRCOMP_METHOD static U64 narrow(F64 y) { return as_bits(y); }
};

// Calls visit(T{}) with the type of floats of 16, 32 or 64 bits.
template <class Visitor>
auto visit_float(const Element& element, Visitor visit) {
  switch (element.width) {
    case 16: return element.exponent_bits == 8 ? visit(BFloat16{}) : visit(Float16{});
    case 32: return visit(Float32{});
    default: return visit(Float64{});
  }
}

// The same with the type that codes this element: integers share the type of their width.
template <class Visitor>
auto visit_element(const Element& element, Visitor visit) {
  return element.width == 8 ? visit(Bits8{}) : visit_float(element, visit);
}

// Asks for the lines of so many bytes from `p` on, which are read soon or are none.
ARRCOMP_INLINE void prefetch_bytes(const void* p, int bytes) {
  for (int at = 0; at < bytes; at += 64) prefetch(static_cast<const uint8_t*>(p) + at);
}

template <class T>
ARRCOMP_INLINE const typename T::storage* element_pointer(const void* array, uint64_t index) {
  return reinterpret_cast<const typename T::storage*>(static_cast<const uint8_t*>(array) +
                                                      index * sizeof(typename T::storage));
}

// The first n lanes of a row; others repeat the last.
template <class Stored>
ARRCOMP_INLINE auto load_row(const Stored* p, int n) {
  return n == lanes_per_row ? load(p) : load_first(p, n);
}

// A row of `n` elements (32, or fewer in an array's last row) as words.
template <class T>
ARRCOMP_INLINE typename T::Word load_elements(const void* array, uint64_t first, int n) {
  return load_row(element_pointer<T>(array, first), n);
}

// The first n lanes of a row.
template <class Stored, class Row>
ARRCOMP_INLINE void store_row(Stored* p, Row row, int n) {
  if (n == lanes_per_row) {
    store(p, row);
  } else {
    store_first(p, row, n);
  }
}

// Elements of each lane's own index, at an address that is a multiple of 4.
template <class Word, class Stored>
ARRCOMP_INLINE Word gather_elements(const Stored* p, U32 index) {
  const auto* const words = reinterpret_cast<const uint32_t*>(p);
  if constexpr (sizeof(Stored) == 8) {
    return join(gather(words, index << 1), gather(words, index << 1 | splat<U32>(1)));
  } else if constexpr (sizeof(Stored) == 4) {
    return gather(words, index);
  } else {
    constexpr int in_word = sizeof(Stored) == 2 ? 1 : 2;  // bits of an index
    const U32 place = (index & splat<U32>((1u << in_word) - 1)) << (5 - in_word);
    return srlv(gather(words, index >> in_word), place) & splat<U32>((1u << (32 >> in_word)) - 1);
  }
}

template <class T>
ARRCOMP_INLINE void store_elements(void* array, uint64_t first, int n, typename T::Word bits) {
  store_row(const_cast<typename T::storage*>(element_pointer<T>(array, first)), bits, n);
}

}  // namespace arrcomp::ARRCOMP_ISA
