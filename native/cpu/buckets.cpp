#include "cpu/buckets.h"

#include <cstring>

#include "cpu/select.h"
#include "cpu/threads.h"

namespace arrcomp::cpu {
namespace {

constexpr uint64_t least_chunks = (1 << 17) / chunk_size;  // for a thread of its own to pay

// Calls work(begin, end) on shares of `items` chunks.
template <class Work>
void share_chunks(uint64_t items, int threads, Work work) {
  const Shares shares = Shares::of(items, threads, least_chunks);
  run(shares.workers, [&](int worker) { work(shares.begin(worker), shares.end(worker)); });
}

// Buckets larger than a piece: their pieces are looked at side by side, then put together.
void store_large_buckets(const BucketJob& job, int threads) {
  const uint64_t size = job.settings.bucket_size, quantized = job.plan.quantized;
  const uint64_t pieces = pieces_of_bucket(size < quantized ? size : quantized);
  std::vector<BucketStatistics> found(job.plan.buckets * pieces, BucketStatistics::none());
  share_chunks(found.size(), threads, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      const uint64_t bucket = i / pieces, within = i % pieces * piece_size;
      const uint64_t bucket_end = std::min((bucket + 1) * size, quantized), first = bucket * size + within;
      if (within < size && first < bucket_end)
        found[i] = machine().bucket_statistics(job, first, std::min(piece_size, bucket_end - first));
    }
  });
  for (uint64_t bucket = 0; bucket < job.plan.buckets; ++bucket) {
    BucketStatistics all = BucketStatistics::none();
    for (uint64_t piece = 0; piece < pieces; ++piece) all.add(found[bucket * pieces + piece]);
    machine().store_bucket(job, bucket, all);
  }
}

}  // namespace

void encode_buckets(const QsgdSettings& settings, const BucketPlan& plan, const void* source, uint8_t* payload,
                    uint64_t seed, int threads) {
  const BucketJob job{plan, settings, source, payload, nullptr, seed};
  const uint64_t item_bytes = plan.element.width / 8;
  const uint64_t numbers = plan.buckets * static_cast<uint64_t>(settings.numbers()) * number_bytes(plan.element);
  memset(payload + numbers, 0, plan.codes_offset - numbers);
  if (settings.bucket_size > piece_size && plan.buckets > 0) store_large_buckets(job, threads);
  share_chunks(plan.chunks(), threads,
               [&](uint64_t begin, uint64_t end) { machine().encode_bucket_chunks(job, begin, end); });
  const uint64_t tail = (plan.count - plan.quantized) * item_bytes;
  memcpy(payload + plan.tail_offset, static_cast<const uint8_t*>(source) + plan.quantized * item_bytes, tail);
  memset(payload + plan.tail_offset + tail, 0, plan.length - plan.tail_offset - tail);
}

void decode_buckets(const QsgdSettings& settings, const BucketPlan& plan, const uint8_t* payload, void* target,
                    int threads) {
  const BucketJob job{plan, settings, nullptr, const_cast<uint8_t*>(payload), target, 0};
  share_chunks(plan.chunks(), threads,
               [&](uint64_t begin, uint64_t end) { machine().decode_bucket_chunks(job, begin, end); });
  const uint64_t item_bytes = plan.element.width / 8;
  memcpy(static_cast<uint8_t*>(target) + plan.quantized * item_bytes, payload + plan.tail_offset,
         (plan.count - plan.quantized) * item_bytes);
}

}  // namespace arrcomp::cpu
