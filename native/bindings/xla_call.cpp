#include "bindings/xla_call.h"

#include "bindings/messages.h"

namespace arrcomp {
namespace {

namespace ffi = xla::ffi;
using ffi::DataType;

// By dtype id. Types below 8 bits (24 to 28), of which XLA puts several into a byte, are handed over as bytes.
constexpr DataType xla_types[dtype_count] = {
    DataType::INVALID,    DataType::PRED,       DataType::S8,
    DataType::U8,         DataType::S16,        DataType::U16,
    DataType::S32,        DataType::U32,        DataType::S64,
    DataType::U64,        DataType::F16,        DataType::BF16,
    DataType::F32,        DataType::F64,        DataType::C64,
    DataType::C128,       DataType::F8E4M3FN,   DataType::F8E5M2,
    DataType::F8E4M3FNUZ, DataType::F8E5M2FNUZ, DataType::F8E4M3B11FNUZ,
    DataType::F8E4M3,     DataType::F8E3M4,     DataType::F8E8M0FNU,
    DataType::U8,         DataType::U8,         DataType::U8,
    DataType::U8,         DataType::U8,
};

void check_type(const std::string& name, ffi::AnyBuffer buffer, DataType type) {
  if (buffer.element_type() == type) return;
  refuse(expected(name, "XLA's element type " + std::to_string(static_cast<int>(type)),
                  std::to_string(static_cast<int>(buffer.element_type()))));
}

uint64_t elements_per_value(DataType type) { return type == DataType::C64 || type == DataType::C128 ? 2 : 1; }

}  // namespace

[[noreturn]] void refuse(const std::string& message) {
  throw CallError{ffi::ErrorCode::kInvalidArgument, "arrcomp: " + message};
}

XlaCall XlaCall::of(int64_t codec_id, ffi::Span<const double> parameters, int64_t dtype_id,
                    ffi::Span<const int64_t> counts, int64_t threads) {
  if (dtype_id < 1 || dtype_id >= dtype_count) refuse(unexpected_dtype(dtype_id));
  check_threads(threads);
  if (counts.size() == 0) refuse("counts: expected one for each array, got none");
  for (const int64_t count : counts)
    if (count < 0 || count >= max_elements) refuse(unexpected_count("counts", count));
  Codec codec;
  const std::span<const double> numbers(parameters.begin(), parameters.size());
  const std::string message = read_codec(codec_id, numbers, elements[dtype_id], codec);
  if (!message.empty()) refuse(message);
  return {codec, elements[dtype_id], xla_types[dtype_id], {counts.begin(), counts.size()}, static_cast<int>(threads)};
}

Items items_of(const std::string& name, ffi::AnyBuffer buffer, DataType type, uint64_t batch) {
  check_type(name, buffer, type);
  const uint64_t values = buffer.element_count();
  if (batch == 0 ? values != 0 : values % batch != 0)
    refuse(expected(name, "values for a batch of " + std::to_string(batch), values));
  const uint64_t per_item = batch == 0 ? 0 : values / batch;
  return {static_cast<uint8_t*>(buffer.untyped_data()), per_item * ffi::ByteWidth(type)};
}

Items array_items(const XlaCall& call, size_t array, ffi::AnyBuffer buffer, uint64_t batch) {
  const std::string name = "array " + std::to_string(array);
  const Items items = items_of(name, buffer, call.type, batch);
  if (batch > 0 && items.bytes != call.array_bytes(array))
    refuse(expected(name, std::to_string(call.array_bytes(array)) + " bytes", items.bytes));
  return items;
}

Axes axes_of(const XlaCall& call, size_t array, ffi::AnyBuffer buffer) {
  const ffi::AnyBuffer::Dimensions sizes = buffer.dimensions();
  uint64_t product = 1;
  for (size_t first = sizes.size();; --first) {
    if (product == call.count(array)) return arrcomp::axes_of({sizes.begin() + first, sizes.end()}, product);
    if (first == 0) return {};
    product *= static_cast<uint64_t>(sizes[first - 1]);
  }
}

Items payload_items(size_t array, ffi::AnyBuffer buffer, uint64_t batch) {
  const Items items = items_of("payload " + std::to_string(array), buffer, DataType::U8, batch);
  if (batch > 1) check_number("bytes beyond a multiple of 8 in a batch's payload", items.bytes % 8, 0);
  return items;
}

const uint64_t* seed_items(ffi::AnyBuffer buffer, uint64_t batch) {
  const Items seeds = items_of("seed", buffer, DataType::U32, batch);
  check_number("bytes for a seed", seeds.bytes, sizeof(uint64_t));
  return reinterpret_cast<const uint64_t*>(seeds.data);
}

uint64_t batch_of(const std::string& name, ffi::AnyBuffer buffer, DataType type, uint64_t per_item) {
  check_type(name, buffer, type);
  const uint64_t values = buffer.element_count();
  if (per_item == 0 || values % per_item != 0)
    refuse(expected(name, "a multiple of " + std::to_string(per_item) + " values", values));
  return values / per_item;
}

uint64_t array_batch(const XlaCall& call, ffi::AnyBuffer buffer) {
  if (call.count(0) == 0) return 0;  // there is nothing to do for empty arrays, however many
  return batch_of("array 0", buffer, call.type, call.count(0) / elements_per_value(call.type));
}

void check_number(const char* what, size_t given, size_t number) {
  if (given != number) refuse(expected(what, std::to_string(number), given));
}

void check_threads(int64_t threads) {
  if (threads < 0 || threads > 1 << 20) refuse(expected("threads", "0 to 1048576", std::to_string(threads)));
}

uint8_t* Device::scratch(uint64_t bytes) {
  // XLA guarantees no more than 16 bytes of alignment.
  const std::optional<void*> memory = allocator.Allocate(bytes + device_alignment, 16);
  if (!memory) throw CallError{ffi::ErrorCode::kResourceExhausted, "arrcomp: no scratch memory on the device"};
  return reinterpret_cast<uint8_t*>(round_up(reinterpret_cast<uintptr_t>(*memory), device_alignment));
}

void check(cuda::Status status) {
  if (status == cuda::Status::ok) return;
  const auto code = status == cuda::Status::failed ? ffi::ErrorCode::kInternal
                    : cuda::is_built()             ? ffi::ErrorCode::kUnavailable
                                                   : ffi::ErrorCode::kUnimplemented;
  throw CallError{code, std::string("arrcomp: ") + cuda::last_error()};
}

}  // namespace arrcomp
