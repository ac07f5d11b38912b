// Launches of sums of payloads.
#include <algorithm>

#include "cuda/bucket_launches.h"
#include "cuda/call.h"
#include "cuda/launch.cuh"
#include "cuda/set_up.cuh"

namespace arrcomp::cuda {
namespace {

// More warps would not hide more latency, and the elements of a chunk that each works on would leave the cache.
constexpr int max_sum_blocks = 512;

uint64_t terms_bytes(size_t terms) { return terms > 1 ? round_up(terms * sizeof(Summand), 256) : 0; }

BucketLayout layout_of(const Codec& codec, const Element& element) {
  BucketLayout layout{};
  bucket_layout(codec, element, layout);
  return layout;
}

// Whether a sum is encoded without an array of its elements.
bool is_fused(const Codec& terms_codec, const Codec& codec, const Element& element) {
  BucketLayout layout;
  return terms_codec.settings.index() == codec.settings.index() && bucket_layout(codec, element, layout) &&
         fits_chunks(layout);
}

uint64_t window_bytes(const Element& element, const Shape& shape) {
  return shape.all_warps() * chunk_size * (element.width / 8);
}

// One term travels as an argument of the kernels, several are written to `scratch` first.
SumWork sum_work(const Sum& sum, uint64_t units, uint32_t* status, void* scratch, cudaStream_t stream) {
  constexpr uint64_t most = max_in_batch<Summand>;
  auto* const table = static_cast<Summand*>(scratch);
  const BucketPlan plan = make_bucket_plan(layout_of(sum.codec, sum.element), sum.element, sum.count);
  const size_t count = sum.terms.size();
  SumWork work{plan, {table, sum.terms[0], count, units}, nullptr, nullptr, status};
  Batch<Summand, most> batch;
  for (batch.first = 0; count > 1 && batch.first < count; batch.first += most) {
    batch.count = std::min<uint64_t>(most, count - batch.first);
    for (uint64_t i = 0; i < batch.count; ++i) batch.items[i] = {sum.terms[batch.first + i], 0};
    launch<set_up_terms<most>>(set_up_shape(1), stream, batch, table);
  }
  return work;
}

// Enqueues the sum, which begins with `start` if that is not null, to `target`.
Status add(const Sum& sum, const void* start, void* target, uint32_t* status, void* scratch, cudaStream_t stream,
           const Device& device) {
  SumWork work = sum_work(sum, ceil_div(sum.count, chunk_size), status, scratch, stream);
  work.start = start;
  work.target = target;
  // Payloads of nothing are checked too.
  const Shape shape = shape_for(device, std::max<uint64_t>(work.terms.units, 1));
  launches_of(sum.codec, sum.element).sum(sum.codec, work, shape, stream);
  return launched("launching a sum");
}

Status clear(uint32_t* status, cudaStream_t stream) {
  const cudaError_t error = cudaMemsetAsync(status, 0, sizeof *status, stream);
  return error == cudaSuccess ? Status::ok : fail(Status::failed, "setting the status", error);
}

Status encode_fused(const Sum& sum, const Codec& codec, uint8_t* payload, uint64_t* length, const Seed& seed,
                    uint32_t* status, uint8_t* scratch, cudaStream_t stream, const Device& device) {
  const BucketTiling tiling{sum.element, layout_of(codec, sum.element)};
  const BucketPlan plan = tiling.plan(sum.count);
  SumEncodeWork work{sum_work(sum, tiling.units(plan), status, scratch, stream),
                     {plan, nullptr, payload, length, 0},
                     seed,
                     scratch + terms_bytes(sum.terms.size())};
  const Shape shape = shape_for(device, work.sum.terms.units, max_sum_blocks);
  launches_of(codec, sum.element).encode_sum(sum.codec, codec, work, shape, stream);
  return launched("launching the encoder of a sum");
}

}  // namespace

uint64_t accumulate_scratch_bytes(size_t terms) { return terms_bytes(terms); }

Status accumulate(const Sum& sum, const void* start, void* target, uint32_t* status, void* scratch, void* stream_handle,
                  int device) {
  const DeviceGuard guard(device);
  if (const Status found = check(guard); found != Status::ok) return found;
  const auto stream = static_cast<cudaStream_t>(stream_handle);
  if (const Status found = clear(status, stream); found != Status::ok) return found;
  return add(sum, start, target, status, scratch, stream, guard.device());
}

Status encode_sum_scratch_bytes(const Codec& terms_codec, const Codec& codec, const Element& element, size_t terms,
                                uint64_t count, int device, uint64_t& bytes) {
  if (is_fused(terms_codec, codec, element)) {
    const DeviceGuard guard(device);
    if (const Status found = check(guard); found != Status::ok) return found;
    const BucketTiling tiling{element, layout_of(codec, element)};
    const Shape shape = shape_for(guard.device(), tiling.units(tiling.plan(count)), max_sum_blocks);
    bytes = terms_bytes(terms) + window_bytes(element, shape);
    return Status::ok;
  }
  const Status status = encode_scratch_bytes(codec, element, {&count, 1}, device, bytes);
  bytes += terms_bytes(terms) + round_up(count * (element.width / 8), 256);
  return status;
}

Status encode_sum(const Sum& sum, const Codec& codec, uint8_t* payload, uint64_t* length, const Seed& seed,
                  uint32_t* status, void* scratch, void* stream_handle, int device) {
  const DeviceGuard guard(device);
  if (const Status found = check(guard); found != Status::ok) return found;
  const auto stream = static_cast<cudaStream_t>(stream_handle);
  auto* const base = static_cast<uint8_t*>(scratch);
  if (const Status found = clear(status, stream); found != Status::ok) return found;
  if (is_fused(sum.codec, codec, sum.element))
    return encode_fused(sum, codec, payload, length, seed, status, base, stream, guard.device());
  uint8_t* const array = base + terms_bytes(sum.terms.size());
  const Status added = add(sum, nullptr, array, status, base, stream, guard.device());
  if (added != Status::ok) return added;
  const EncodeTask encoding{array, payload, sum.count};
  return encode(codec, sum.element, {&encoding, 1}, length, seed,
                array + round_up(sum.count * (sum.element.width / 8), 256), stream, current_device);
}

}  // namespace arrcomp::cuda
