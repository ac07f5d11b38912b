// Launches of bucketed codecs. Where everything stands in a payload is known before: no array waits for another.
#include "cuda/buckets.h"
#include "cuda/call.h"
#include "cuda/launch.h"
#include "cuda/lists.cuh"

namespace arrcomp::cuda {
namespace {

// One array travels as an argument of the kernels, and needs no list.
struct ScratchLayout {
  uint64_t statistics, end;  // the list of the arrays is at the beginning

  ScratchLayout(const QsgdSettings& settings, uint64_t count, uint64_t units) {
    statistics = count > 1 ? round_up(count * sizeof(BucketEncodeArray), 256) : 0;
    end = statistics + (settings.bucket_size > piece_size ? units * sizeof(ChunkStatistics) : 0);
  }
};

ArrayList<BucketEncodeArray> list_to_encode(const BucketCut& cut, std::span<const Encoding> arrays, uint64_t* lengths,
                                            void* scratch, cudaStream_t stream) {
  constexpr uint64_t most = most_in_batch<Encoding>;
  auto* const table = static_cast<BucketEncodeArray*>(scratch);
  ArrayList<BucketEncodeArray> list{table, {}, arrays.size(), units_of_all(cut, arrays)};
  if (arrays.size() == 1) {
    list.single = device_array(cut, arrays[0], 0, lengths);
  } else {
    for_each_batch<most>(cut, arrays, [&](const Batch<Encoding, most>& batch) {
      set_up_bucket_encoding<most><<<1, set_up_threads, 0, stream>>>(batch, cut, table, lengths);
    });
  }
  return list;
}

}  // namespace

uint64_t bucket_scratch_bytes(const QsgdSettings& settings, const Element& element, std::span<const uint64_t> counts) {
  const BucketCut cut{element, settings};
  uint64_t units = 0;
  for (const uint64_t count : counts) units += cut.units(cut.plan(count));
  return ScratchLayout(settings, counts.size(), units).end;
}

Status encode_buckets(const QsgdSettings& settings, const Element& element, std::span<const Encoding> arrays,
                      uint64_t* lengths, const Seed& seed, void* scratch, cudaStream_t stream) {
  if (arrays.empty()) return Status::ok;
  const auto list = list_to_encode({element, settings}, arrays, lengths, scratch, stream);
  const ScratchLayout layout(settings, list.count, list.units);
  auto* const statistics = reinterpret_cast<ChunkStatistics*>(static_cast<uint8_t*>(scratch) + layout.statistics);
  const BucketEncodeArguments arguments{list, statistics, settings, seed};
  const BucketKernels& kernels = kernels_of_element(element).buckets;
  const int blocks = blocks_for(list.units, most_blocks);
  if (settings.bucket_size > piece_size) {
    kernels.look_at_pieces(arguments, blocks, stream);
    kernels.store_numbers(arguments, blocks, stream);
  }
  kernels.encode(arguments, blocks, stream);
  return launched("launching the encoder");
}

Status decode_buckets(const QsgdSettings& settings, const Element& element, std::span<const Decoding> arrays,
                      uint32_t* status, void* scratch, cudaStream_t stream) {
  BucketDecodeArguments arguments{{}, status, settings};
  const cudaError_t error =
      list_to_decode(BucketCut{element, settings}, arrays, status, scratch, stream, arguments.arrays);
  if (error != cudaSuccess) return fail(Status::failed, "listing the arrays", error);
  const int blocks = blocks_for(arguments.arrays.units, most_blocks);
  kernels_of_element(element).buckets.decode(arguments, blocks, stream);
  return launched("launching the decoder");
}

}  // namespace arrcomp::cuda
