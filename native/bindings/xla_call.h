// What XLA hands to a custom call, checked against the call's attributes before any work.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "backend.h"
#include "xla/ffi/api/ffi.h"

namespace arrcomp {

// Thrown where a call cannot be carried out; XLA gets it as its own error, as no exception may pass through XLA.
struct CallError {
  xla::ffi::ErrorCode code;
  std::string message;
};

// The attributes. An array's elements are counted as in a payload: a complex value is two.
struct XlaCall {
  Codec codec;
  Element element;
  xla::ffi::DataType type;          // of the arrays
  std::span<const int64_t> counts;  // elements of each array, without batch dimensions
  int threads;                      // on the host; 0 for all cores

  static XlaCall of(int64_t codec_id, xla::ffi::Span<const double> parameters, int64_t dtype_id,
                    xla::ffi::Span<const int64_t> counts, int64_t threads);

  size_t arrays() const { return counts.size(); }
  uint64_t count(size_t array) const { return static_cast<uint64_t>(counts[array]); }
  uint64_t array_bytes(size_t array) const { return count(array) * (element.width / 8); }
  uint64_t capacity(size_t array) const { return arrcomp::capacity(codec, element, count(array)); }
};

// A buffer of `batch` items of the same size, one after the other.
struct Items {
  uint8_t* data;
  uint64_t bytes;  // of one

  uint8_t* operator[](uint64_t index) const { return data + index * bytes; }
};

// The items of an operand or result of this type. `name` is what messages call it.
Items items_of(const std::string& name, xla::ffi::AnyBuffer buffer, xla::ffi::DataType type, uint64_t batch);

// As items_of, of the call's array `array`, which must have its size.
Items array_items(const XlaCall& call, size_t array, xla::ffi::AnyBuffer buffer, uint64_t batch);

// How many items of `per_item` elements of this type a buffer has.
uint64_t batch_of(const std::string& name, xla::ffi::AnyBuffer buffer, xla::ffi::DataType type, uint64_t per_item);

// How many arrays of the call's only size a buffer has.
uint64_t array_batch(const XlaCall& call, xla::ffi::AnyBuffer buffer);

void check_number(const char* what, size_t given, size_t expected);

}  // namespace arrcomp
