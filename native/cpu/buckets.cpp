#include "cpu/buckets.h"

#include <algorithm>
#include <cstring>
#include <vector>

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

// The statistics of runs of `size` elements each (the last may have fewer): pieces are looked at side by side, then put
// together.
class RunStatistics {
 public:
  RunStatistics(const BucketJob& job, uint64_t size, int threads)
      : pieces_(pieces_of_bucket(std::min(size, job.plan.quantized))),
        found_(ceil_div(job.plan.quantized, size) * pieces_, BucketStatistics::none()) {
    share_chunks(found_.size(), threads, [&](uint64_t begin, uint64_t end) {
      for (uint64_t i = begin; i < end; ++i) {
        const uint64_t run = i / pieces_, within = i % pieces_ * piece_size;
        const uint64_t run_end = std::min((run + 1) * size, job.plan.quantized), first = run * size + within;
        if (within < size && first < run_end)
          found_[i] = machine().buckets.statistics(job, first, std::min(piece_size, run_end - first));
      }
    });
  }

  BucketStatistics of(uint64_t run) const {
    BucketStatistics all = BucketStatistics::none();
    for (uint64_t first = 0; first < pieces_; first += pieces_per_run) {
      BucketStatistics some = BucketStatistics::none();
      const uint64_t end = std::min(first + pieces_per_run, pieces_);
      for (uint64_t piece = first; piece < end; ++piece) some.add(found_[run * pieces_ + piece]);
      all.add(some);
    }
    return all;
  }

 private:
  uint64_t pieces_;
  std::vector<BucketStatistics> found_;
};

void store_numbers(const BucketJob& job, int threads) {
  const BucketPlan& plan = job.plan;
  if (plan.quantized == 0) return;
  if (plan.buckets_offset > 0) {
    const RunStatistics array(job, plan.quantized, threads);
    machine().buckets.store_array(job, array.of(0));
  }
  if (plan.bucket_bytes == 0 || plan.bucket_size <= piece_size) return;
  const RunStatistics buckets(job, plan.bucket_size, threads);
  for (uint64_t bucket = 0; bucket < plan.buckets; ++bucket)
    machine().buckets.store_bucket(job, bucket, buckets.of(bucket));
}

}  // namespace

void encode_buckets(const Codec& codec, const BucketPlan& plan, const void* source, uint8_t* payload, uint64_t seed,
                    int threads) {
  const BucketJob job{codec, plan, source, payload, nullptr, seed};
  memset(payload, 0, plan.buckets_offset);
  memset(payload + plan.buckets_end(), 0, plan.codes_offset - plan.buckets_end());
  store_numbers(job, threads);
  share_chunks(plan.chunks(), threads,
               [&](uint64_t begin, uint64_t end) { machine().buckets.encode_chunks(job, begin, end); });
  const uint64_t tail_at = plan.quantized * (plan.element.width / 8), tail_end = plan.tail_offset + plan.tail_bytes();
  memcpy(payload + plan.tail_offset, static_cast<const uint8_t*>(source) + tail_at, plan.tail_bytes());
  memset(payload + tail_end, 0, plan.length - tail_end);
}

void decode_buckets(const Codec& codec, const BucketPlan& plan, const uint8_t* payload, void* target, int threads) {
  const BucketJob job{codec, plan, nullptr, const_cast<uint8_t*>(payload), target, 0};
  share_chunks(plan.chunks(), threads,
               [&](uint64_t begin, uint64_t end) { machine().buckets.decode_chunks(job, begin, end); });
  const uint64_t tail_at = plan.quantized * (plan.element.width / 8);
  memcpy(static_cast<uint8_t*>(target) + tail_at, payload + plan.tail_offset, plan.tail_bytes());
}

}  // namespace arrcomp::cpu
