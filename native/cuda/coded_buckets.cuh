// What bucketed payloads with entropy-coded codes take beside the coders: all but the codes is copied, and lengths told.
#pragma once
#include "cuda/set_up.cuh"

namespace arrcomp::cuda {

// What is in front of the codes of an array: `bytes`, a multiple of 8, copied from one place to another.
struct Front {
  const uint8_t* from;
  uint8_t* to;
  uint64_t bytes;
};

ARRCOMP_SHARED void copy_front(const Front& front, uint64_t thread, uint64_t threads) {
  const auto* const from = reinterpret_cast<const uint64_t*>(front.from);
  auto* const to = reinterpret_cast<uint64_t*>(front.to);
  for (uint64_t i = thread; i < front.bytes / 8; i += threads) to[i] = from[i];
}

// After the coder: fronts are copied to the payloads, and count in the lengths.
template <uint64_t most>
__global__ void finish_coded_encoding(const __grid_constant__ Batch<Front, most> batch, uint64_t* lengths) {
  const uint64_t thread = thread_of_grid();
  const uint64_t threads = threads_of_grid();
  for (uint64_t i = 0; i < batch.count; ++i) copy_front(batch.items[i].array, thread, threads);
  for (uint64_t i = thread; i < batch.count; i += threads) lengths[batch.first + i] += batch.items[i].array.bytes;
}

// A payload whose front is copied before its codes are decoded.
struct CodedPayload {
  Front front;
  uint64_t limit;
  const uint64_t* length;  // null: it is `limit`
};

// Before the coder: fronts are copied from the payloads, and `lengths` are told of what follows: more than there can be
// where a payload is too short.
template <uint64_t most>
__global__ void set_up_coded_decoding(const __grid_constant__ Batch<CodedPayload, most> batch, uint64_t* lengths) {
  const uint64_t thread = thread_of_grid();
  const uint64_t threads = threads_of_grid();
  for (uint64_t i = 0; i < batch.count; ++i) {
    const CodedPayload& payload = batch.items[i].array;
    if (payload.limit >= payload.front.bytes) copy_front(payload.front, thread, threads);
  }
  for (uint64_t i = thread; i < batch.count; i += threads) {
    const CodedPayload& payload = batch.items[i].array;
    const uint64_t length = payload.length == nullptr ? payload.limit : read_number(payload.length);
    const bool is_there = length >= payload.front.bytes && length <= payload.limit;
    lengths[batch.first + i] = is_there ? length - payload.front.bytes : ~uint64_t{0};
  }
}

}  // namespace arrcomp::cuda
