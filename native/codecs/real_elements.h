// Float elements as numbers of the arithmetic type: float64 in itself, all others in float32, to which those of 16 bits
// are widened where they are loaded. Which of them it is, is known when it runs: code is made once for each arithmetic
// type, and not for each type of elements.
#pragma once
#include "codecs/element_types.h"
#include "codecs/numeric/real_layout.h"

namespace arrcomp::ARRCOMP_ISA {

// Calls visit(Real{}) with the arithmetic type of floats of 16, 32 or 64 bits.
template <class Visitor>
auto visit_real(const Element& element, Visitor visit) {
  return element.width == 64 ? visit(F64{}) : visit(F32{});
}

ARRCOMP_INLINE uint64_t element_bytes(const Element& element, uint64_t count) { return count * (element.width / 8); }

// Where an element stands in an array.
ARRCOMP_INLINE const uint8_t* element_at(const Element& element, const void* array, uint64_t index) {
  return static_cast<const uint8_t*>(array) + element_bytes(element, index);
}

// Calls visit(T{}) with the type of such elements, of which Real is the arithmetic type.
template <class Visitor>
ARRCOMP_METHOD auto visit_stored(const Element& element, F32, Visitor visit) {
  if (element.width == 32) [[likely]]
    return visit(Float32{});
  return element.exponent_bits == 8 ? visit(BFloat16{}) : visit(Float16{});
}
template <class Visitor>
ARRCOMP_METHOD auto visit_stored(const Element&, F64, Visitor visit) {
  return visit(Float64{});
}

// A row of `n` elements (32, or fewer in an array's last row), exactly; NaN is some NaN of the same sign.
template <class Real>
ARRCOMP_METHOD Real load_any(const Element& element, const void* array, uint64_t first, int n) {
  const auto load_as = [&]<class T>(T) ARRCOMP_LAMBDA { return T::widen(load_elements<T>(array, first, n)); };
  return in_registers(visit_stored(element, Real{}, load_as));
}
template <class Real>
ARRCOMP_APART Real load_short(const Element& element, const void* array, uint64_t first, int n) {
  return load_any<Real>(element, array, first, n);
}
template <class Real>
ARRCOMP_METHOD Real load_real(const Element& element, const void* array, uint64_t first, int n) {
  // Where rows have no registers of their own, what a branch has made is copied from place to place.
  if constexpr (rows_at_once > 1 && rows_side_by_side == 1 && sizeof(typename Real::scalar) == sizeof(float)) {
    if (element.width == 32) [[likely]]
      return Float32::widen(load_elements<Float32>(array, first, n));
    return load_short<Real>(element, array, first, n);
  } else {
    return load_any<Real>(element, array, first, n);
  }
}

template <class Real>
ARRCOMP_INLINE Real largest_number(Real) {
  using Scalar = typename Real::scalar;
  return splat<Real>(static_cast<Scalar>(sizeof(Scalar) == 8 ? Float64::largest : double{Float32::largest}));
}

// The quiet NaN with sign 0 and no other bit of the mantissa than the highest, in place of every NaN.
template <class Real>
ARRCOMP_INLINE Real with_quiet_nan(Real y) {
  using Layout = RealLayout<Real>;
  const Real infinite = real_of_bits(splat<typename Layout::Word>(Layout::infinity));
  const Real nan = real_of_bits(splat<typename Layout::Word>(Layout::infinity | Layout::infinity >> 1));
  return select(le(abs(y), infinite), y, nan);
}

// The first n lanes of a row, rounded to nearest even. NaN must be that of with_quiet_nan, and stays it.
template <class Real>
ARRCOMP_METHOD void store_real(const Element& element, void* array, uint64_t first, int n, Real y) {
  visit_stored(element, Real{}, [&]<class T>(T) ARRCOMP_LAMBDA { store_elements<T>(array, first, n, T::narrow(y)); });
}

// The value after store_real and load_real.
template <class Real>
ARRCOMP_METHOD Real rounded_to(const Element& element, Real y) {
  return visit_stored(element, Real{}, [&]<class T>(T) ARRCOMP_LAMBDA { return T::widen(T::narrow(y)); });
}

// Elements [first, first + count) of an array.
struct StoredElements {
  const Element& element;
  const void* array;
  uint64_t first, count;

  // Calls visit(x, n) with each row, which has n of them. Such loops are short: each type of elements has its own. Where
  // the order does not matter, neighbours may become rows in another way.
  template <class Real, bool in_order = true, class Visit>
  ARRCOMP_METHOD void each_row(Visit visit) const {
    visit_stored(element, Real{}, [&]<class T>(T) ARRCOMP_LAMBDA {
      const uint64_t whole = count / lanes_per_row * lanes_per_row;
      const int left = static_cast<int>(count - whole);
      for (uint64_t i = visit_together<T, in_order>(visit); i < whole; i += lanes_per_row)
        visit(T::widen(load_elements<T>(array, first + i, lanes_per_row)), lanes_per_row);
      if (left > 0) visit(T::widen(load_elements<T>(array, first + whole, left)), left);
    });
  }

 private:
  // Visits rows that lanes load together, where they have registers for them, and returns the elements in these.
  template <class T, bool in_order, class Visit>
  ARRCOMP_METHOD uint64_t visit_together(Visit visit) const {
    if constexpr (rows_at_once == 1 && sizeof(typename T::Real::scalar) == sizeof(float)) {
      constexpr int rows = 16;
      constexpr uint64_t together = rows * lanes_per_row;
      using Storage = typename T::storage;
      const auto* elements = in_device_memory(static_cast<const Storage*>(array) + first);
      if (!in_order && reinterpret_cast<uintptr_t>(elements) % 16 != 0) return 0;
      const auto visit_some = [&](const Storage* some) ARRCOMP_LAMBDA {
        U32 words[rows];
        if constexpr (in_order) {
          ARRCOMP_UNROLL for (int j = 0; j < rows; ++j) words[j] = load(some + j * lanes_per_row);
        } else {
          arrive_unsorted(fetch_rows<rows>(some), words);
        }
        ARRCOMP_UNROLL for (int j = 0; j < rows; ++j) visit(T::widen(words[j]), lanes_per_row);
      };
      const auto visits = static_cast<uint32_t>(count / together);
      if constexpr (in_order) {
        ARRCOMP_ROLLED
        for (uint32_t i = 0; i < visits; ++i, elements += together)  // counted: bucket sums, 16 rows
          visit_some(elements);
      } else {
        ARRCOMP_ROLLED
        for (uint32_t i = 0; i < visits / 2; ++i, elements += 2 * together) {  // counted: bucket extremes, 32 rows
          visit_some(elements);
          visit_some(elements + together);
        }
        if (visits % 2 != 0) visit_some(elements);
      }
      return visits * together;
    }
    return 0;
  }
};

// What elements can hold of the arithmetic type's numbers.
template <class Real>
class ElementRange {
  using Scalar = typename Real::scalar;

 public:
  ARRCOMP_METHOD explicit ElementRange(const Element& element)
      : largest_(largest_of(element)), is_whole_(element.width == sizeof(Scalar) * 8) {}

  // Whether all of them.
  ARRCOMP_METHOD bool is_whole() const { return is_whole_; }

  ARRCOMP_METHOD Mask holds(Real y) const { return le(abs(y), splat<Real>(largest_)); }

  // Between the negative of the largest number and that.
  ARRCOMP_METHOD Real limited(Real y) const {
    const Real limit = splat<Real>(largest_);
    return min(max(y, splat<Real>(0) - limit), limit);
  }

  // The same, with the quiet NaN. `are_numbers`: they are finite.
  ARRCOMP_METHOD Real element(Real y, bool are_numbers = false) const {
    if (are_numbers) return is_whole_ ? y : limited(y);
    return with_quiet_nan(limited(y));
  }

 private:
  ARRCOMP_METHOD static Scalar largest_of(const Element& element) {
    if constexpr (sizeof(Scalar) == 8) {
      return Float64::largest;
    } else {
      if (element.width == 32) return Float32::largest;
      return element.exponent_bits == 8 ? BFloat16::largest : Float16::largest;
    }
  }

  Scalar largest_;
  bool is_whole_;
};

}  // namespace arrcomp::ARRCOMP_ISA
