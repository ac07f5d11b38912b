// The custom calls for sums of payloads, in batches as those of xla_ffi.cpp. Attributes: as there, for the terms' codec,
// with one number in `counts`; and weights (float64[N], one for each term). Payloads have exactly their length.
//
// arrcomp_accumulate  operands: an array and N payloads, uint8[batch, length]. Result: the array with the payloads'
//                     arrays added; the two may be the same memory.
// arrcomp_encode_sum  operands: N payloads, and if the result's codec needs them seeds, uint32[batch, 2]. More attributes:
//                     result_codec_id and result_parameters. Results: the payload, uint8[batch, at least its capacity],
//                     and its length, uint32[batch, 1, 2] or uint32[batch, 2], a little-endian uint64.
#include "bindings/xla_call.h"
#include "bindings/xla_ffi.h"

namespace nb = nanobind;

namespace arrcomp {
namespace {

namespace ffi = xla::ffi;
using ffi::DataType;
using Weights = ffi::Span<const double>;

// The terms of each item of a batch.
class BatchTerms {
 public:
  // `first` is the operand of the first payload.
  BatchTerms(const XlaCall& call, const Arguments& arguments, size_t first, Weights weights, uint64_t batch)
      : call_(call), number_(weights.size()), terms_(batch * number_) {
    check_number("counts", call.arrays(), 1);
    if (number_ == 0) check_number("weights", 0, 1);
    if (!has_sums(call.codec))
      throw CallError{ffi::ErrorCode::kInvalidArgument,
                      "arrcomp: codec_id: expected a codec whose payloads can be added, got another"};
    for (size_t t = 0; t < number_; ++t) {
      const Items payloads = payload_items(t, operand(arguments, first + t), batch);
      if (batch > 0) check_number("bytes of a payload", payloads.bytes, call.capacity(0));
      for (uint64_t b = 0; b < batch; ++b)
        terms_[b * number_ + t] = {payloads[b], payloads.bytes, nullptr, weights.begin()[t]};
    }
  }

  Sum operator[](uint64_t b) const {
    return {call_.codec, call_.element, {terms_.data() + b * number_, number_}, call_.count(0)};
  }

 private:
  const XlaCall& call_;
  size_t number_;
  std::vector<Summand> terms_;
};

struct AccumulateWork {
  uint64_t batch;
  Items source, target;
  BatchTerms terms;

  AccumulateWork(const XlaCall& call, const Arguments& arguments, const Results& results, Weights weights)
      : batch(checked_batch(call, arguments, results, weights)),
        source(array_items(call, 0, operand(arguments, 0), batch)),
        target(array_items(call, 0, result(results, 0), batch)),
        terms(call, arguments, 1, weights, batch) {}

 private:
  static uint64_t checked_batch(const XlaCall& call, const Arguments& arguments, const Results& results,
                                Weights weights) {
    check_number("operands", arguments.size(), weights.size() + 1);
    check_number("results", results.size(), 1);
    check_number("counts", call.arrays(), 1);
    return array_batch(call, operand(arguments, 0));
  }
};

struct EncodeSumWork {
  uint64_t batch;
  Items payload;
  uint64_t* lengths;
  const uint64_t* seeds;  // null where there are none
  BatchTerms terms;

  EncodeSumWork(const XlaCall& call, const XlaCall& sum, const Arguments& arguments, const Results& results,
                Weights weights)
      : batch(checked_batch(arguments, results, weights)),
        payload(payload_items(0, result(results, 0), batch)),
        lengths(static_cast<uint64_t*>(result(results, 1).untyped_data())),
        seeds(arguments.size() > weights.size() && batch > 0 ? seed_items(operand(arguments, weights.size()), batch)
                                                             : nullptr),
        terms(call, arguments, 0, weights, batch) {
    if (batch > 0 && payload.bytes < sum.capacity(0))
      check_number("bytes for a payload", payload.bytes, sum.capacity(0));
  }

 private:
  static uint64_t checked_batch(const Arguments& arguments, const Results& results, Weights weights) {
    if (arguments.size() != weights.size() + 1) check_number("operands", arguments.size(), weights.size());
    check_number("results", results.size(), 2);
    return batch_of("lengths", result(results, 1), DataType::U32, 2);
  }
};

void check_sound(size_t corrupt, const Sum& sum) {
  if (corrupt < sum.terms.size()) throw CallError{ffi::ErrorCode::kDataLoss, corrupt_message};
}

ffi::Error accumulate_on_host(Arguments arguments, Results results, int64_t codec_id,
                              ffi::Span<const double> parameters, int64_t dtype_id, ffi::Span<const int64_t> counts,
                              int64_t threads, Weights weights) {
  return guarded([&] {
    const XlaCall call = XlaCall::of(codec_id, parameters, dtype_id, counts, threads);
    const AccumulateWork work(call, arguments, results, weights);
    for (uint64_t b = 0; b < work.batch; ++b) {
      const Sum sum = work.terms[b];
      check_sound(cpu::accumulate(sum, work.source[b], work.target[b], call.threads), sum);
    }
  });
}

ffi::Error accumulate_on_device(cudaStream_t stream, int32_t index, ffi::ScratchAllocator allocator,
                                Arguments arguments, Results results, int64_t codec_id,
                                ffi::Span<const double> parameters, int64_t dtype_id, ffi::Span<const int64_t> counts,
                                int64_t threads, Weights weights) {
  return guarded([&] {
    Device device{stream, index, std::move(allocator)};
    const XlaCall call = XlaCall::of(codec_id, parameters, dtype_id, counts, threads);
    const AccumulateWork work(call, arguments, results, weights);
    uint8_t* const scratch = device.scratch(cuda::accumulate_scratch_bytes(weights.size()) + sizeof(uint64_t));
    // Payloads have their length: the status says nothing.
    auto* const status = reinterpret_cast<uint32_t*>(scratch + cuda::accumulate_scratch_bytes(weights.size()));
    for (uint64_t b = 0; b < work.batch; ++b)
      check(cuda::accumulate(work.terms[b], work.source[b], work.target[b], status, scratch, stream, index));
  });
}

ffi::Error encode_sum_on_host(Arguments arguments, Results results, int64_t codec_id,
                              ffi::Span<const double> parameters, int64_t dtype_id, ffi::Span<const int64_t> counts,
                              int64_t threads, Weights weights, int64_t result_codec_id,
                              ffi::Span<const double> result_parameters) {
  return guarded([&] {
    const XlaCall call = XlaCall::of(codec_id, parameters, dtype_id, counts, threads);
    const XlaCall sum_call = XlaCall::of(result_codec_id, result_parameters, dtype_id, counts, threads);
    const EncodeSumWork work(call, sum_call, arguments, results, weights);
    for (uint64_t b = 0; b < work.batch; ++b) {
      const Sum sum = work.terms[b];
      const Seed seed{0, work.seeds == nullptr ? nullptr : work.seeds + b};
      check_sound(cpu::encode_sum(sum, sum_call.codec, work.payload[b], work.lengths + b, seed, call.threads), sum);
    }
  });
}

ffi::Error encode_sum_on_device(cudaStream_t stream, int32_t index, ffi::ScratchAllocator allocator,
                                Arguments arguments, Results results, int64_t codec_id,
                                ffi::Span<const double> parameters, int64_t dtype_id, ffi::Span<const int64_t> counts,
                                int64_t threads, Weights weights, int64_t result_codec_id,
                                ffi::Span<const double> result_parameters) {
  return guarded([&] {
    Device device{stream, index, std::move(allocator)};
    const XlaCall call = XlaCall::of(codec_id, parameters, dtype_id, counts, threads);
    const XlaCall sum_call = XlaCall::of(result_codec_id, result_parameters, dtype_id, counts, threads);
    const EncodeSumWork work(call, sum_call, arguments, results, weights);
    uint64_t bytes = 0;
    check(cuda::encode_sum_scratch_bytes(call.codec, sum_call.codec, call.element, weights.size(), call.count(0), index,
                                         bytes));
    bytes = round_up(bytes, device_alignment);
    uint8_t* const scratch = device.scratch(bytes + sizeof(uint64_t));
    auto* const status = reinterpret_cast<uint32_t*>(scratch + bytes);  // says nothing: payloads have their length
    for (uint64_t b = 0; b < work.batch; ++b) {
      const Seed seed{0, work.seeds == nullptr ? nullptr : work.seeds + b};
      check(cuda::encode_sum(work.terms[b], sum_call.codec, work.payload[b], work.lengths + b, seed, status, scratch,
                             stream, index));
    }
  });
}

template <class Binding>
auto with_weights(Binding&& binding) {
  return with_operands_and_attributes(std::forward<Binding>(binding)).template Attr<Weights>("weights");
}

template <class Binding>
auto with_result(Binding&& binding) {
  return with_weights(std::forward<Binding>(binding))
      .template Attr<int64_t>("result_codec_id")
      .template Attr<ffi::Span<const double>>("result_parameters");
}

XLA_FFI_Error* host_accumulate(XLA_FFI_CallFrame* frame) {
  static const auto handler = with_weights(ffi::Ffi::Bind()).To(accumulate_on_host);
  return handler->Call(frame);
}

XLA_FFI_Error* device_accumulate(XLA_FFI_CallFrame* frame) {
  static const auto handler = with_weights(device_binding()).To(accumulate_on_device);
  return handler->Call(frame);
}

XLA_FFI_Error* host_encode_sum(XLA_FFI_CallFrame* frame) {
  static const auto handler = with_result(ffi::Ffi::Bind()).To(encode_sum_on_host);
  return handler->Call(frame);
}

XLA_FFI_Error* device_encode_sum(XLA_FFI_CallFrame* frame) {
  static const auto handler = with_result(device_binding()).To(encode_sum_on_device);
  return handler->Call(frame);
}

}  // namespace

void add_sum_handlers(nb::dict& handlers) {
  handlers["arrcomp_accumulate"] = xla_target(host_accumulate, device_accumulate);
  handlers["arrcomp_encode_sum"] = xla_target(host_encode_sum, device_encode_sum);
}

}  // namespace arrcomp
