// What XLA hands to a custom call, checked against the call's attributes before any work.
#pragma once
#include <exception>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend.h"
#include "bindings/messages.h"
#include "xla/ffi/api/ffi.h"

typedef struct CUstream_st* cudaStream_t;  // CUDA's own declaration, without its headers

namespace arrcomp {

using Arguments = xla::ffi::RemainingArgs;
using Results = xla::ffi::RemainingRets;

constexpr uint64_t device_alignment = 256;

// Thrown where a call cannot be carried out; XLA gets it as its own error, as no exception may pass through XLA.
struct CallError {
  xla::ffi::ErrorCode code;
  std::string message;
};

constexpr const char* corrupt_message = "arrcomp: payload: not one of this data type and number of elements (corrupt)";

// Throws a CallError for a wrong argument.
[[noreturn]] void refuse(const std::string& message);

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

// items_of for the call's array `array`, which must have its size.
Items array_items(const XlaCall& call, size_t array, xla::ffi::AnyBuffer buffer, uint64_t batch);

// The axes of such an array, without the batch's dimensions.
Axes axes_of(const XlaCall& call, size_t array, xla::ffi::AnyBuffer buffer);

// The payloads of one array. Between the items of a batch there is no room to align what comes next.
Items payload_items(size_t array, xla::ffi::AnyBuffer buffer, uint64_t batch);

// The seeds of a batch's items.
const uint64_t* seed_items(xla::ffi::AnyBuffer buffer, uint64_t batch);

// How many items of `per_item` elements of this type a buffer has.
uint64_t batch_of(const std::string& name, xla::ffi::AnyBuffer buffer, xla::ffi::DataType type, uint64_t per_item);

// How many arrays of the call's only size a buffer has.
uint64_t array_batch(const XlaCall& call, xla::ffi::AnyBuffer buffer);

void check_number(const char* what, size_t given, size_t number);
void check_threads(int64_t threads);

inline xla::ffi::AnyBuffer operand(const Arguments& arguments, size_t index) {
  return *arguments.get<xla::ffi::AnyBuffer>(index);
}

inline xla::ffi::AnyBuffer result(const Results& results, size_t index) {
  return **results.get<xla::ffi::AnyBuffer>(index);
}

// On CUDA devices: work is enqueued on XLA's stream, with scratch memory of XLA's pool, which reuses it in the stream's
// order.
struct Device {
  cudaStream_t stream;
  int32_t index;
  xla::ffi::ScratchAllocator allocator;

  uint8_t* scratch(uint64_t bytes);
};

void check(cuda::Status status);

// What the work throws, as XLA's errors.
template <class Work>
xla::ffi::Error guarded(const Work& work) {
  using xla::ffi::ErrorCode;
  try {
    work();
    return xla::ffi::Error::Success();
  } catch (const CallError& error) {
    return {error.code, error.message};
  } catch (const WrongReference& wrong) {
    return {ErrorCode::kInvalidArgument, "arrcomp: " + wrong_reference(wrong, 1 + wrong.array)};
  } catch (const std::bad_alloc&) {
    return {ErrorCode::kResourceExhausted, "arrcomp: no memory on the host"};
  } catch (const std::exception& error) {
    return {ErrorCode::kInternal, std::string("arrcomp: ") + error.what()};
  }
}

// The arguments of a call's function: the device's if it runs on one, the operands, the results, the attributes.
inline auto device_binding() {
  return xla::ffi::Ffi::Bind()
      .Ctx<xla::ffi::PlatformStream<cudaStream_t>>()
      .Ctx<xla::ffi::DeviceOrdinal>()
      .Ctx<xla::ffi::ScratchAllocator>();
}

template <class Binding>
auto with_operands_and_attributes(Binding&& binding) {
  return std::forward<Binding>(binding)
      .RemainingArgs()
      .RemainingRets()
      .template Attr<int64_t>("codec_id")
      .template Attr<xla::ffi::Span<const double>>("parameters")
      .template Attr<int64_t>("dtype_id")
      .template Attr<xla::ffi::Span<const int64_t>>("counts")
      .template Attr<int64_t>("threads");
}

}  // namespace arrcomp
