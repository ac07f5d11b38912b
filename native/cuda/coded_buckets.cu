#include <algorithm>
#include <vector>

#include "cuda/buckets.h"
#include "cuda/call.h"
#include "cuda/coded_buckets.cuh"
#include "cuda/coded_buckets.h"
#include "cuda/launch.cuh"

namespace arrcomp::cuda {
namespace {

constexpr uint64_t alignment = 256;

// Where the bytes of each array's payload stand before its codes are coded, and what else is in the scratch memory. An
// array's length is 64 bits; `bucket_scratch` and `code_scratch` are those of the two coders.
struct ScratchLayout {
  std::vector<BucketPlan> plans;
  std::vector<uint64_t> bytes;
  uint64_t lengths, status, bucket_scratch, code_scratch = 0;

  ScratchLayout(const BucketLayout& layout, const Element& element, std::span<const uint64_t> counts) {
    uint64_t end = 0;
    for (const uint64_t count : counts) {
      plans.push_back(make_bucket_plan(layout, element, count));
      bytes.push_back(end);
      end = round_up(end + plans.back().length, alignment);
    }
    lengths = end;
    status = lengths + counts.size() * sizeof(uint64_t);
    bucket_scratch = round_up(status + sizeof(uint64_t), alignment);
  }

  void set_code_scratch(uint64_t bucket_bytes) { code_scratch = round_up(bucket_scratch + bucket_bytes, alignment); }

  std::vector<uint64_t> code_counts() const {
    std::vector<uint64_t> counts;
    for (const BucketPlan& plan : plans) counts.push_back(plan.quantized);
    return counts;
  }
};

template <class Array>
std::vector<uint64_t> counts_of(std::span<const Array> arrays) {
  std::vector<uint64_t> counts;
  for (const Array& array : arrays) counts.push_back(array.count);
  return counts;
}

ScratchLayout layout_to_encode(const BucketLayout& layout, const Element& element, std::span<const uint64_t> counts) {
  ScratchLayout scratch(layout, element, counts);
  scratch.set_code_scratch(bucket_scratch_bytes(layout, element, counts));
  return scratch;
}

// The same list of arrays as that of bucketed codecs.
uint64_t list_bytes(size_t arrays) { return arrays > 1 ? arrays * sizeof(BucketDecodeArray) : 0; }

ScratchLayout layout_to_decode(const BucketLayout& layout, const Element& element, std::span<const uint64_t> counts) {
  ScratchLayout scratch(layout, element, counts);
  scratch.set_code_scratch(list_bytes(counts.size()));
  return scratch;
}

// Calls enqueue(batch, shape) for all items; `bytes` of them are copied.
template <class Item, class Enqueue>
void for_batches(const std::vector<Item>& items, uint64_t bytes, Enqueue enqueue) {
  constexpr uint64_t most = max_in_batch<Item>, words_of_thread = 4, max_copy_blocks = 1024;
  const uint64_t wanted = ceil_div(bytes / 8, set_up_threads * words_of_thread);
  const Shape shape = set_up_shape(static_cast<int>(std::clamp<uint64_t>(wanted, 1, max_copy_blocks)));
  Batch<Item, most> batch;
  for (batch.first = 0; batch.first < items.size(); batch.first += most) {
    batch.count = std::min<uint64_t>(most, items.size() - batch.first);
    for (uint64_t i = 0; i < batch.count; ++i) batch.items[i] = {items[batch.first + i], 0};
    enqueue(batch, shape);
  }
}

}  // namespace

Status coded_encode_scratch_bytes(const BucketLayout& layout, const Element& element, std::span<const uint64_t> counts,
                                  uint64_t& bytes) {
  const ScratchLayout scratch = layout_to_encode(layout, element, counts);
  const Status status = encode_scratch_bytes(code_codec(), code_element, scratch.code_counts(), current_device, bytes);
  bytes += scratch.code_scratch;
  return status;
}

Status encode_coded_buckets(const Codec& codec, const BucketLayout& layout, const Element& element,
                            std::span<const EncodeTask> arrays, uint64_t* lengths, const Seed& seed, void* memory,
                            cudaStream_t stream, const Device& device) {
  const std::vector<uint64_t> counts = counts_of(arrays);
  const ScratchLayout scratch = layout_to_encode(layout, element, counts);
  auto* const base = static_cast<uint8_t*>(memory);
  std::vector<EncodeTask> whole, codes;
  std::vector<Front> fronts;
  uint64_t front_bytes = 0;
  for (size_t i = 0; i < arrays.size(); ++i) {
    uint8_t* const bytes = base + scratch.bytes[i];
    const BucketPlan& plan = scratch.plans[i];
    whole.push_back({arrays[i].source, bytes, arrays[i].count});
    codes.push_back({bytes + plan.codes_offset, arrays[i].payload + plan.codes_offset, plan.quantized});
    fronts.push_back({bytes, arrays[i].payload, plan.codes_offset});
    front_bytes += plan.codes_offset;
  }
  auto* const own_lengths = reinterpret_cast<uint64_t*>(base + scratch.lengths);
  Status status =
      encode_buckets(codec, layout, element, whole, own_lengths, seed, base + scratch.bucket_scratch, stream, device);
  if (status != Status::ok) return status;
  status =
      encode(code_codec(), code_element, codes, lengths, seed, base + scratch.code_scratch, stream, current_device);
  if (status != Status::ok) return status;
  for_batches(fronts, front_bytes, [&]<uint64_t most>(const Batch<Front, most>& batch, const Shape& shape) {
    launch<finish_coded_encoding<most>>(shape, stream, batch, lengths);
  });
  return launched("finishing the payloads");
}

uint64_t coded_decode_scratch_bytes(const BucketLayout& layout, const Element& element,
                                    std::span<const uint64_t> counts) {
  const ScratchLayout scratch = layout_to_decode(layout, element, counts);
  return scratch.code_scratch + decode_scratch_bytes(code_codec(), code_element, scratch.code_counts());
}

Status decode_coded_buckets(const Codec& codec, const BucketLayout& layout, const Element& element,
                            std::span<const DecodeTask> arrays, uint32_t* status, void* memory, cudaStream_t stream,
                            const Device& device) {
  const std::vector<uint64_t> counts = counts_of(arrays);
  const ScratchLayout scratch = layout_to_decode(layout, element, counts);
  auto* const base = static_cast<uint8_t*>(memory);
  auto* const lengths = reinterpret_cast<uint64_t*>(base + scratch.lengths);
  std::vector<CodedPayload> payloads;
  std::vector<DecodeTask> codes, whole;
  uint64_t front_bytes = 0;
  for (size_t i = 0; i < arrays.size(); ++i) {
    uint8_t* const bytes = base + scratch.bytes[i];
    const BucketPlan& plan = scratch.plans[i];
    const DecodeTask& array = arrays[i];
    payloads.push_back({{array.payload, bytes, plan.codes_offset}, array.limit, array.length});
    const uint64_t limit = array.limit < plan.codes_offset ? 0 : array.limit - plan.codes_offset;
    codes.push_back({array.payload + plan.codes_offset, limit, lengths + i, bytes + plan.codes_offset, plan.quantized});
    whole.push_back({bytes, plan.length, nullptr, array.target, array.count});
    front_bytes += plan.codes_offset;
  }
  for_batches(payloads, front_bytes, [&]<uint64_t most>(const Batch<CodedPayload, most>& batch, const Shape& shape) {
    launch<set_up_coded_decoding<most>>(shape, stream, batch, lengths);
  });
  Status done = launched("copying what is not coded");
  if (done != Status::ok) return done;
  done = decode(code_codec(), code_element, codes, status, base + scratch.code_scratch, stream, current_device);
  if (done != Status::ok) return done;
  // Bytes of the right length are never corrupt: their status says nothing.
  auto* const no_status = reinterpret_cast<uint32_t*>(base + scratch.status);
  return decode_buckets(codec, layout, element, whole, no_status, base + scratch.bucket_scratch, stream, device);
}

}  // namespace arrcomp::cuda
