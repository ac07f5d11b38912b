// Hands the arrays of a call to the device.
#pragma once
#include <algorithm>

#include "cuda/launch.cuh"
#include "cuda/set_up.cuh"

namespace arrcomp::cuda {

// Calls enqueue(batch) for all arrays, in batches of at most `most`.
template <uint64_t most, class Tiling, class Array, class Enqueue>
void for_each_batch(const Tiling& tiling, std::span<const Array> arrays, Enqueue enqueue) {
  uint64_t units = 0;
  Batch<Array, most> batch;
  for (batch.first = 0; batch.first < arrays.size(); batch.first += most) {
    batch.count = std::min<uint64_t>(most, arrays.size() - batch.first);
    for (uint64_t i = 0; i < batch.count; ++i) {
      const Array& array = arrays[batch.first + i];
      batch.items[i] = {array, units};
      units += tiling.units(tiling.plan(array.count));
    }
    enqueue(batch);
  }
}

// Enqueues what sets up the decoding of `arrays`, one or more: their list, and the status.
template <class Tiling>
cudaError_t list_to_decode(const Tiling& tiling, std::span<const DecodeTask> arrays, uint32_t* status, void* scratch,
                           cudaStream_t stream, ArrayList<DecodeArrayOf<typename Tiling::Plan>>& list) {
  using Array = DecodeArrayOf<typename Tiling::Plan>;
  constexpr uint64_t most = max_in_batch<DecodeTask>;
  auto* const table = static_cast<Array*>(scratch);
  list = {arrays.size() > 1 ? table : nullptr, {}, arrays.size(), units_of_all(tiling, arrays)};
  if (arrays.size() == 1) {
    list.single = device_array(tiling, arrays[0], 0);
    return cudaMemsetAsync(status, 0, sizeof *status, stream);
  }
  for_each_batch<most>(tiling, arrays, [&](const Batch<DecodeTask, most>& batch) {
    launch<set_up_decoding<Tiling, most>>(set_up_shape(1), stream, batch, tiling, table, status);
  });
  return cudaPeekAtLastError();
}

}  // namespace arrcomp::cuda
