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

// Writes a payload but the numbers that are there already: encode_chunks(begin, end) writes chunks, put_tail(to) the
// elements that are stored as they are.
template <class EncodeChunks, class PutTail>
void write_payload(const BucketPlan& plan, uint8_t* payload, int threads, EncodeChunks encode_chunks,
                   PutTail put_tail) {
  memset(payload + plan.buckets_end(), 0, plan.buckets_padded() - plan.buckets_end());
  share_chunks(plan.chunks(), threads, encode_chunks);
  const uint64_t tail_end = plan.tail_offset + plan.tail_bytes();
  put_tail(payload + plan.tail_offset);
  memset(payload + tail_end, 0, plan.tail_padded() - tail_end);
}

}  // namespace

void encode_buckets(const Codec& codec, const BucketPlan& plan, const void* source, uint8_t* payload, uint64_t seed,
                    int threads) {
  const BucketJob job{codec, plan, source, payload, nullptr, seed};
  memset(payload, 0, plan.buckets_offset);
  store_numbers(job, threads);
  write_payload(
      plan, payload, threads, [&](uint64_t begin, uint64_t end) { machine().buckets.encode_chunks(job, begin, end); },
      [&](uint8_t* to) {
        const uint64_t tail_at = plan.quantized * (plan.element.width / 8);
        memcpy(to, static_cast<const uint8_t*>(source) + tail_at, plan.tail_bytes());
      });
}

void encode_sum_by_chunks(const SumJob& sum, const Codec& codec, const BucketPlan& plan, uint8_t* payload,
                          uint64_t seed, int threads) {
  const auto encode_chunks = [&](uint64_t begin, uint64_t end) {
    alignas(64) uint8_t window[chunk_size * sizeof(double)];  // the elements of a chunk
    for (uint64_t chunk = begin; chunk < end; ++chunk) {
      const uint64_t first = chunk * chunk_size;
      machine().buckets.sum(sum, first, std::min<uint64_t>(plan.quantized - first, chunk_size), window);
      // Where an array would begin that had its elements there.
      const auto* const array =
          reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(window) - first * (plan.element.width / 8));
      machine().buckets.encode_chunks({codec, plan, array, payload, nullptr, seed}, chunk, chunk + 1);
    }
  };
  write_payload(plan, payload, threads, encode_chunks,
                [&](uint8_t* to) { machine().buckets.sum(sum, plan.quantized, plan.count - plan.quantized, to); });
}

void sum_buckets(const SumJob& sum, void* target, int threads) {
  const uint64_t item = sum.plan.element.width / 8;
  share_chunks(ceil_div(sum.plan.count, chunk_size), threads, [&](uint64_t begin, uint64_t end) {
    const uint64_t first = begin * chunk_size, last = std::min(end * chunk_size, sum.plan.count);
    machine().buckets.sum(sum, first, last - first, static_cast<uint8_t*>(target) + first * item);
  });
}

void decode_buckets(const Codec& codec, const BucketPlan& plan, const uint8_t* payload, void* target, int threads) {
  const BucketJob job{codec, plan, nullptr, const_cast<uint8_t*>(payload), target, 0};
  share_chunks(plan.chunks(), threads,
               [&](uint64_t begin, uint64_t end) { machine().buckets.decode_chunks(job, begin, end); });
  const uint64_t tail_at = plan.quantized * (plan.element.width / 8);
  memcpy(static_cast<uint8_t*>(target) + tail_at, payload + plan.tail_offset, plan.tail_bytes());
}

}  // namespace arrcomp::cpu
