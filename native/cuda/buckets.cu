// Launches of bucketed codecs. Where everything stands in a payload is known before: no array waits for another.
#include "cuda/bucket_launches.h"
#include "cuda/buckets.h"
#include "cuda/call.h"
#include "cuda/launch.cuh"
#include "cuda/lists.cuh"
#include "cuda/statistics.h"

namespace arrcomp::cuda {
namespace {

// One array travels as an argument of the kernels, and needs no list.
struct ScratchLayout {
  uint64_t statistics, tickets, entries, end;  // the list of the arrays is at the beginning

  ScratchLayout(const BucketLayout& layout, uint64_t count, uint64_t units) {
    statistics = count > 1 ? round_up(count * sizeof(BucketEncodeArray), 256) : 0;
    const bool takes_statistics = has_large_buckets(layout) || layout.array_bytes > 0;
    tickets = statistics + round_up(takes_statistics ? units * sizeof(ChunkStatistics) : 0, 256);
    entries = tickets + (layout.has_extras ? 256 : 0);
    end = entries + (layout.has_extras ? units * sizeof(uint64_t) : 0);
  }

  static bool has_large_buckets(const BucketLayout& layout) {
    return layout.bucket_bytes > 0 && (layout.bucket_size == 0 || layout.bucket_size > segment_size);
  }
};

ArrayList<BucketEncodeArray> list_to_encode(const BucketTiling& tiling, std::span<const EncodeTask> arrays,
                                            uint64_t* lengths, void* scratch, cudaStream_t stream) {
  constexpr uint64_t most = max_in_batch<EncodeTask>;
  auto* const table = static_cast<BucketEncodeArray*>(scratch);
  ArrayList<BucketEncodeArray> list{
      arrays.size() > 1 ? table : nullptr, {}, arrays.size(), units_of_all(tiling, arrays)};
  if (arrays.size() == 1) {
    list.single = device_array(tiling, arrays[0], 0, lengths);
  } else {
    for_each_batch<most>(tiling, arrays, [&](const Batch<EncodeTask, most>& batch) {
      launch<set_up_bucket_encoding<most>>(set_up_shape(1), stream, batch, tiling, table, lengths);
    });
  }
  return list;
}

// Looks at what is more than a warp sees of a chunk, and stores what follows from it.
void fit_buckets(const Codec& codec, const Element& element, const StatisticsWork& work, uint64_t max_elements,
                 const Seed& seed, const Shape& shape, cudaStream_t stream) {
  const BucketLaunches& launches = launches_of(codec, element);
  compute_statistics(element, work, moments_of(codec), shape, stream);
  if (max_elements > segments_per_run * segment_size) join_runs(work, shape, stream);
  launches.fit(codec, work, seed, shape, stream);
}

}  // namespace

uint64_t bucket_scratch_bytes(const BucketLayout& layout, const Element& element, std::span<const uint64_t> counts) {
  const BucketTiling tiling{element, layout};
  uint64_t units = 0;
  for (const uint64_t count : counts) units += tiling.units(tiling.plan(count));
  return ScratchLayout(layout, counts.size(), units).end;
}

Status encode_buckets(const Codec& codec, const BucketLayout& layout, const Element& element,
                      std::span<const EncodeTask> arrays, uint64_t* lengths, const Seed& seed, void* scratch,
                      cudaStream_t stream, const Device& device) {
  if (arrays.empty()) return Status::ok;
  const auto list = list_to_encode({element, layout}, arrays, lengths, scratch, stream);
  const ScratchLayout offsets(layout, list.count, list.units);
  auto* const statistics = reinterpret_cast<ChunkStatistics*>(static_cast<uint8_t*>(scratch) + offsets.statistics);
  const Shape shape = shape_for(device, list.units);
  uint64_t max_elements = 0;
  for (const EncodeTask& array : arrays) max_elements = std::max(max_elements, array.count);
  if (layout.array_bytes > 0) fit_buckets(codec, element, {list, statistics, true}, max_elements, seed, shape, stream);
  if (ScratchLayout::has_large_buckets(layout)) {
    if (layout.bucket_size > 0) max_elements = std::min(max_elements, layout.bucket_size);
    fit_buckets(codec, element, {list, statistics, false}, max_elements, seed, shape, stream);
  }
  BucketEncodeWork work{list, seed, nullptr, nullptr};
  if (layout.has_extras) {
    auto* const base = static_cast<uint8_t*>(scratch);
    const cudaError_t error = cudaMemsetAsync(base + offsets.tickets, 0, offsets.end - offsets.tickets, stream);
    if (error != cudaSuccess) return fail(Status::failed, "setting up the placing of extra words", error);
    work.tickets = reinterpret_cast<uint64_t*>(base + offsets.tickets);
    work.entries = reinterpret_cast<uint64_t*>(base + offsets.entries);
  }
  launches_of(codec, element).encode(codec, work, shape, stream);
  return launched("launching the encoder");
}

Status decode_buckets(const Codec& codec, const BucketLayout& layout, const Element& element,
                      std::span<const DecodeTask> arrays, uint32_t* status, void* scratch, cudaStream_t stream,
                      const Device& device) {
  BucketDecodeWork work{{}, status};
  const cudaError_t error = list_to_decode(BucketTiling{element, layout}, arrays, status, scratch, stream, work.arrays);
  if (error != cudaSuccess) return fail(Status::failed, "listing the arrays", error);
  launches_of(codec, element).decode(codec, work, shape_for(device, work.arrays.units), stream);
  return launched("launching the decoder");
}

}  // namespace arrcomp::cuda
