// The custom calls. N >= 1 arrays of one data type may each have the same leading batch dimensions in front of their own
// (`batch` below, in all): item (b, i) is array i of batch index b. All buffers are in row-major order.
//
// Attributes of all calls: codec_id and dtype_id (FORMAT.md), parameters (float64[], Codec.core_parameters()), counts
// (int64[N], elements of each array without batch dimensions; a complex value is two), threads (on the host; 0: all).
//
// arrcomp_encode     operands: the arrays, their references if the codec needs them, and if it needs them the seeds of a
//                    batch's items, uint32[batch, 2].
//                    Results: for each a payload, uint8[batch, at least its capacity], and lengths, uint32[batch, N, 2].
//                    Each pair is a little-endian uint64, as XLA's 64-bit types may be switched off.
// arrcomp_decode     operands: the payloads, uint8[batch, any number], the arrays' references if the codec needs them,
//                    and the payloads' lengths in one array as above or in several, uint32[batch, any number, 2], in
//                    order; of a fixed-rate codec they may be left out.
//                    Results: the arrays and a status, uint32[batch], whose first word is 0, or 1 if a payload is
//                    corrupt. On the host, corruption is an error of the call (DATA_LOSS) as well; on a device nothing
//                    waits to learn of it.
// arrcomp_roundtrip  operands: one array, and seeds as above. Result: the array, compressed and decompressed. The two
//                    may be the same memory: the operand is wholly encoded before the result is written.
//
// Sums of arrays are in xla_sums.cpp.
#include "bindings/xla_ffi.h"

#include <cstring>
#include <memory>

#include "bindings/xla_call.h"

namespace nb = nanobind;

namespace arrcomp {
namespace {

namespace ffi = xla::ffi;
using ffi::DataType;

// Operands that are references.
size_t references_of(const XlaCall& call) { return has_reference(call.codec) ? call.arrays() : 0; }

// Raises unless the operands are the arrays, their references, and maybe seeds: whether these are there.
bool check_operands(const XlaCall& call, const Arguments& arguments) {
  const size_t arrays = call.arrays() + references_of(call);
  if (arguments.size() == arrays + 1) return true;
  check_number("operands", arguments.size(), arrays);
  return false;
}

// Gives array i of each of a batch's items its reference, which is operand `arrays + i`.
template <class Tasks>
void set_references(const XlaCall& call, const Arguments& arguments, uint64_t batch, Tasks& tasks) {
  const size_t n = call.arrays();
  for (size_t i = 0; i < references_of(call); ++i) {
    const Items references = array_items(call, i, operand(arguments, n + i), batch);
    for (uint64_t b = 0; b < batch; ++b) tasks[b * n + i].reference = references[b];
  }
}

// The seeds of a batch's items; null where there are none.
const uint64_t* seeds_of(const XlaCall& call, const Arguments& arguments, uint64_t batch) {
  if (!check_operands(call, arguments) || batch == 0) return nullptr;
  return seed_items(operand(arguments, call.arrays() + references_of(call)), batch);
}

struct EncodeWork {
  std::vector<EncodeTask> arrays;
  uint64_t* lengths;
  const uint64_t* seeds;
};

EncodeWork encode_work(const XlaCall& call, const Arguments& arguments, const Results& results) {
  const size_t n = call.arrays();
  check_operands(call, arguments);
  check_number("results", results.size(), n + 1);
  const ffi::AnyBuffer lengths = result(results, n);
  const uint64_t batch = batch_of("lengths", lengths, DataType::U32, 2 * n);
  EncodeWork work{std::vector<EncodeTask>(batch * n), static_cast<uint64_t*>(lengths.untyped_data()),
                  seeds_of(call, arguments, batch)};
  for (size_t i = 0; i < n; ++i) {
    const Items sources = array_items(call, i, operand(arguments, i), batch);
    const Items payloads = payload_items(i, result(results, i), batch);
    if (batch > 0 && payloads.bytes < call.capacity(i))
      check_number("bytes for a payload", payloads.bytes, call.capacity(i));
    const Axes axes = axes_of(call, i, operand(arguments, i));
    for (uint64_t b = 0; b < batch; ++b) work.arrays[b * n + i] = {sources[b], payloads[b], call.count(i), axes};
  }
  set_references(call, arguments, batch, work.arrays);
  return work;
}

struct DecodeWork {
  std::vector<DecodeTask> arrays;
  uint32_t* status;
  uint64_t batch;
};

// Sets the length of each item from the operands from `begin` on.
void set_lengths(std::vector<DecodeTask>& items, size_t arrays, uint64_t batch, const Arguments& arguments,
                 size_t begin) {
  size_t first = 0;  // array whose length comes next
  for (size_t k = begin; k < arguments.size(); ++k) {
    const Items lengths = items_of("lengths", operand(arguments, k), DataType::U32, batch);
    const size_t rows = lengths.bytes / sizeof(uint64_t);
    if (rows > arrays - first) check_number("lengths", first + rows, arrays);
    for (uint64_t b = 0; b < batch; ++b)
      for (size_t row = 0; row < rows; ++row)
        items[b * arrays + first + row].length = reinterpret_cast<const uint64_t*>(lengths[b]) + row;
    first += rows;
  }
  if (batch > 0) check_number("lengths", first, arrays);
}

DecodeWork decode_work(const XlaCall& call, const Arguments& arguments, const Results& results) {
  const size_t n = call.arrays();
  const size_t lengths = n + references_of(call);
  if (arguments.size() < lengths) check_number("operands", arguments.size(), lengths + 1);
  check_number("results", results.size(), n + 1);
  const bool all_of_it = has_fixed_rate(call.codec, call.element) && arguments.size() == n;
  const ffi::AnyBuffer status = result(results, n);
  const uint64_t batch = batch_of("status", status, DataType::U32, 1);
  DecodeWork work{std::vector<DecodeTask>(batch * n), static_cast<uint32_t*>(status.untyped_data()), batch};
  for (size_t i = 0; i < n; ++i) {
    const Items payloads = payload_items(i, operand(arguments, i), batch);
    const Items targets = array_items(call, i, result(results, i), batch);
    if (all_of_it && batch > 0) check_number("bytes of a payload", payloads.bytes, call.capacity(i));
    for (uint64_t b = 0; b < batch; ++b)
      work.arrays[b * n + i] = {payloads[b], payloads.bytes, nullptr, targets[b], call.count(i)};
  }
  set_references(call, arguments, batch, work.arrays);
  if (!all_of_it) set_lengths(work.arrays, n, batch, arguments, lengths);
  return work;
}

// A round trip's operand into payloads, and these into its result, which may be the operand.
struct RoundtripWork {
  std::vector<EncodeTask> encodings;
  std::vector<DecodeTask> decodings;
};

uint64_t payload_stride(const XlaCall& call) { return round_up(call.capacity(0), device_alignment); }

struct RoundtripBuffers {
  uint64_t batch;
  const uint64_t* seeds;
  Items source;
  Items target;
  Axes axes;

  RoundtripBuffers(const XlaCall& call, const Arguments& arguments, const Results& results) {
    check_number("counts", call.arrays(), 1);
    if (has_reference(call.codec)) refuse("codec: expected one without a reference, got one with it");
    check_operands(call, arguments);
    check_number("results", results.size(), 1);
    batch = array_batch(call, operand(arguments, 0));
    seeds = seeds_of(call, arguments, batch);
    source = array_items(call, 0, operand(arguments, 0), batch);
    target = array_items(call, 0, result(results, 0), batch);
    axes = axes_of(call, 0, operand(arguments, 0));
  }
};

RoundtripWork roundtrip_work(const XlaCall& call, const RoundtripBuffers& buffers, uint8_t* payloads,
                             const uint64_t* lengths) {
  const uint64_t batch = buffers.batch;
  RoundtripWork work{std::vector<EncodeTask>(batch), std::vector<DecodeTask>(batch)};
  for (uint64_t b = 0; b < batch; ++b) {
    uint8_t* payload = payloads + b * payload_stride(call);
    work.encodings[b] = {buffers.source[b], payload, call.count(0), buffers.axes};
    work.decodings[b] = {payload, call.capacity(0), lengths + b, buffers.target[b], call.count(0)};
  }
  return work;
}

// On the host.

void encode_on_host(const XlaCall& call, std::span<const EncodeTask> arrays, uint64_t* lengths, const uint64_t* seeds) {
  const size_t n = call.arrays();
  for (size_t first = 0, end = 0; first < arrays.size(); first = end) {
    const Seed seed{seeds == nullptr ? 0 : seeds[first / n], nullptr};
    for (end = first + n; end < arrays.size() && (seeds == nullptr || seeds[end / n] == seed.value);) end += n;
    cpu::encode(call.codec, call.element, arrays.subspan(first, end - first), lengths + first, seed, call.threads);
  }
}

void decode_on_host(const XlaCall& call, const std::vector<DecodeTask>& arrays) {
  if (cpu::decode(call.codec, call.element, arrays, call.threads) < arrays.size())
    throw CallError{ffi::ErrorCode::kDataLoss, corrupt_message};
}

void host_encode(const XlaCall& call, const Arguments& arguments, const Results& results) {
  const EncodeWork work = encode_work(call, arguments, results);
  encode_on_host(call, work.arrays, work.lengths, work.seeds);
}

void host_decode(const XlaCall& call, const Arguments& arguments, const Results& results) {
  const DecodeWork work = decode_work(call, arguments, results);
  memset(work.status, 0, work.batch * sizeof *work.status);
  decode_on_host(call, work.arrays);
}

void host_roundtrip(const XlaCall& call, const Arguments& arguments, const Results& results) {
  const RoundtripBuffers buffers(call, arguments, results);
  const std::unique_ptr<uint8_t[]> payloads(new uint8_t[buffers.batch * payload_stride(call)]);
  std::vector<uint64_t> lengths(buffers.batch);
  const RoundtripWork work = roundtrip_work(call, buffers, payloads.get(), lengths.data());
  encode_on_host(call, work.encodings, lengths.data(), buffers.seeds);
  decode_on_host(call, work.decodings);
}

// On CUDA devices: enqueued on XLA's stream, with scratch memory of XLA's pool, which reuses it in the stream's order.

// Each item of a batch with seeds is a launch of its own, as it is not known here whether their seeds are the same.
void encode_on_device(const XlaCall& call, std::span<const EncodeTask> arrays, uint64_t* lengths, const uint64_t* seeds,
                      Device& device) {
  const size_t n = call.arrays(), at_once = seeds == nullptr ? arrays.size() : n;
  std::vector<uint64_t> counts;
  for (const EncodeTask& array : arrays.first(at_once)) counts.push_back(array.count);
  uint64_t bytes = 0;
  check(cuda::encode_scratch_bytes(call.codec, call.element, counts, device.index, bytes));
  uint8_t* const scratch = device.scratch(bytes);
  for (size_t first = 0; first < arrays.size(); first += at_once) {
    const Seed seed{0, seeds == nullptr ? nullptr : seeds + first / n};
    check(cuda::encode(call.codec, call.element, arrays.subspan(first, at_once), lengths + first, seed, scratch,
                       device.stream, device.index));
  }
}

void decode_on_device(const XlaCall& call, const std::vector<DecodeTask>& arrays, uint32_t* status, Device& device) {
  std::vector<uint64_t> counts;
  for (const DecodeTask& array : arrays) counts.push_back(array.count);
  uint8_t* const scratch = device.scratch(cuda::decode_scratch_bytes(call.codec, call.element, counts));
  check(cuda::decode(call.codec, call.element, arrays, status, scratch, device.stream, device.index));
}

void device_encode(const XlaCall& call, const Arguments& arguments, const Results& results, Device& device) {
  const EncodeWork work = encode_work(call, arguments, results);
  if (!work.arrays.empty()) encode_on_device(call, work.arrays, work.lengths, work.seeds, device);
}

void device_decode(const XlaCall& call, const Arguments& arguments, const Results& results, Device& device) {
  const DecodeWork work = decode_work(call, arguments, results);
  if (!work.arrays.empty()) decode_on_device(call, work.arrays, work.status, device);
}

void device_roundtrip(const XlaCall& call, const Arguments& arguments, const Results& results, Device& device) {
  const RoundtripBuffers buffers(call, arguments, results);
  if (buffers.batch == 0) return;
  const uint64_t payload_bytes = buffers.batch * payload_stride(call);
  uint8_t* const payloads = device.scratch(payload_bytes + buffers.batch * sizeof(uint64_t) + sizeof(uint32_t));
  auto* const lengths = reinterpret_cast<uint64_t*>(payloads + payload_bytes);
  auto* const status = reinterpret_cast<uint32_t*>(lengths + buffers.batch);
  const RoundtripWork work = roundtrip_work(call, buffers, payloads, lengths);
  encode_on_device(call, work.encodings, lengths, buffers.seeds, device);
  decode_on_device(call, work.decodings, status, device);
}

// The functions that XLA calls.

using HostCall = void (*)(const XlaCall&, const Arguments&, const Results&);
using DeviceCall = void (*)(const XlaCall&, const Arguments&, const Results&, Device&);

template <HostCall call>
ffi::Error on_host(Arguments arguments, Results results, int64_t codec_id, ffi::Span<const double> parameters,
                   int64_t dtype_id, ffi::Span<const int64_t> counts, int64_t threads) {
  return guarded([&] { call(XlaCall::of(codec_id, parameters, dtype_id, counts, threads), arguments, results); });
}

template <DeviceCall call>
ffi::Error on_device(cudaStream_t stream, int32_t index, ffi::ScratchAllocator allocator, Arguments arguments,
                     Results results, int64_t codec_id, ffi::Span<const double> parameters, int64_t dtype_id,
                     ffi::Span<const int64_t> counts, int64_t threads) {
  return guarded([&] {
    Device device{stream, index, std::move(allocator)};
    call(XlaCall::of(codec_id, parameters, dtype_id, counts, threads), arguments, results, device);
  });
}

template <HostCall call>
XLA_FFI_Error* host_handler(XLA_FFI_CallFrame* frame) {
  static const auto handler = with_operands_and_attributes(ffi::Ffi::Bind()).To(on_host<call>);
  return handler->Call(frame);
}

template <DeviceCall call>
XLA_FFI_Error* device_handler(XLA_FFI_CallFrame* frame) {
  static const auto handler = with_operands_and_attributes(device_binding()).To(on_device<call>);
  return handler->Call(frame);
}

}  // namespace

nb::dict xla_target(XLA_FFI_Handler* host, XLA_FFI_Handler* device) {
  nb::dict platforms;
  platforms["cpu"] = nb::capsule(reinterpret_cast<void*>(host));
  platforms["CUDA"] = nb::capsule(reinterpret_cast<void*>(device));
  return platforms;
}

nb::dict xla_handlers() {
  nb::dict handlers;
  handlers["arrcomp_encode"] = xla_target(host_handler<host_encode>, device_handler<device_encode>);
  handlers["arrcomp_decode"] = xla_target(host_handler<host_decode>, device_handler<device_decode>);
  handlers["arrcomp_roundtrip"] = xla_target(host_handler<host_roundtrip>, device_handler<device_roundtrip>);
  add_sum_handlers(handlers);
  add_activation_handlers(handlers);
  return handlers;
}

}  // namespace arrcomp
