// The arrays of a call travel to the device as arguments of kernels, which write them into the scratch memory: nothing
// waits for a copy, no memory of the host must outlive the call, and a graph keeps all it needs.
#pragma once
#include "cuda/bucket_arguments.h"
#include "cuda/header.h"
#include "cuda/tiling.h"
#include "stream/sums.h"

namespace arrcomp::cuda {

// Kernels take 32,764 bytes of arguments from CUDA 12.1 on, 4,096 before.
#if CUDART_VERSION >= 12010
constexpr uint64_t max_argument_bytes = 32764;
#else
constexpr uint64_t max_argument_bytes = 4096;
#endif

template <class Array>
struct BatchItem {
  Array array;
  uint64_t first_unit;
};

template <class Array>
constexpr uint64_t max_in_batch = (max_argument_bytes - 256) / sizeof(BatchItem<Array>);

// The arrays [first, first + count) of a call.
template <class Array, uint64_t most>
struct Batch {
  uint64_t first, count;
  BatchItem<Array> items[most];
};

ARRCOMP_SHARED EncodeArray device_array(const GroupTiling& tiling, const EncodeTask& array, uint64_t first_unit,
                                        uint64_t* length) {
  return {tiling.plan(array.count), array.source, array.payload, length, first_unit, {0, 0}};
}

ARRCOMP_SHARED BucketEncodeArray device_array(const BucketTiling& tiling, const EncodeTask& array, uint64_t first_unit,
                                              uint64_t* length) {
  return {tiling.plan(array.count), array.source, array.payload, length, first_unit};
}

template <class Tiling>
ARRCOMP_SHARED DecodeArrayOf<typename Tiling::Plan> device_array(const Tiling& tiling, const DecodeTask& array,
                                                                 uint64_t first_unit) {
  return {tiling.plan(array.count), array.payload, array.limit, array.length, array.target, first_unit};
}

// The payload of an array without groups is its header alone.
ARRCOMP_SHARED void finish_empty(const EncodeArray& array, const GroupSettings& settings) {
  write_header(array, settings);
  *array.length = payload_header_bytes;
}

ARRCOMP_METHOD uint64_t thread_of_grid() { return uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
ARRCOMP_METHOD uint64_t threads_of_grid() { return uint64_t{gridDim.x} * blockDim.x; }

// What encoding groups expects to be zero.
ARRCOMP_METHOD void clear_placing(const EncodeArguments& a) {
  for (uint64_t i = thread_of_grid(); i < a.groups; i += threads_of_grid()) a.entries[i] = 0;
  if (thread_of_grid() == 0) *a.tickets = 0;
}

// Writes the arrays of a batch, and with the first of a call's batches all that encoding expects to be zero.
template <uint64_t most>
__global__ void set_up_encoding(const __grid_constant__ Batch<EncodeTask, most> batch,
                                const __grid_constant__ EncodeArguments a, uint64_t* lengths) {
  for (uint64_t i = thread_of_grid(); i < batch.count; i += threads_of_grid()) {
    const auto& [encoding, first_unit] = batch.items[i];
    const EncodeArray array = device_array(GroupTiling{a.element}, encoding, first_unit, lengths + batch.first + i);
    a.arrays[batch.first + i] = array;
    if (array.plan.groups == 0) finish_empty(array, a.settings);
  }
  if (batch.first == 0) clear_placing(a);
}

// set_up_encoding for bucketed codecs, by one block.
template <uint64_t most>
__global__ void set_up_bucket_encoding(const __grid_constant__ Batch<EncodeTask, most> batch, BucketTiling tiling,
                                       BucketEncodeArray* arrays, uint64_t* lengths) {
  for (uint64_t i = threadIdx.x; i < batch.count; i += blockDim.x) {
    const auto& [encoding, first_unit] = batch.items[i];
    arrays[batch.first + i] = device_array(tiling, encoding, first_unit, lengths + batch.first + i);
  }
}

// set_up_encoding for decoding, by one block.
template <class Tiling, uint64_t most>
__global__ void set_up_decoding(const __grid_constant__ Batch<DecodeTask, most> batch, Tiling tiling,
                                DecodeArrayOf<typename Tiling::Plan>* arrays, uint32_t* status) {
  if (batch.first == 0 && threadIdx.x == 0) *status = 0;
  for (uint64_t i = threadIdx.x; i < batch.count; i += blockDim.x) {
    const auto& [decoding, first_unit] = batch.items[i];
    arrays[batch.first + i] = device_array(tiling, decoding, first_unit);
  }
}

// Writes the terms of a sum, by one block.
template <uint64_t most>
__global__ void set_up_terms(const __grid_constant__ Batch<Summand, most> batch, Summand* terms) {
  for (uint64_t i = threadIdx.x; i < batch.count; i += blockDim.x) terms[batch.first + i] = batch.items[i].array;
}

}  // namespace arrcomp::cuda
