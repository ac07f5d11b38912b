#include "cpu/buckets.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "cpu/driver.h"
#include "cpu/in_order.h"
#include "cpu/select.h"

namespace arrcomp::cpu {
namespace {

constexpr uint64_t min_chunks = min_elements / chunk_size;

// Calls work(begin, end) on shares of `items` chunks.
template <class Work>
void share_chunks(uint64_t items, int threads, Work work) {
  const Shares shares = Shares::of(items, threads, min_chunks);
  run(shares.workers, [&](int worker) { work(shares.begin(worker), shares.end(worker)); });
}

// The statistics of runs of `size` elements each (the last may have fewer): segments are looked at side by side, then
// put together.
class RunStatistics {
 public:
  RunStatistics(const BucketJob& job, uint64_t size, int threads)
      : segments_(segments_of_bucket(std::min(size, job.plan.quantized))),
        found_(ceil_div(job.plan.quantized, size) * segments_, BucketStatistics::none()) {
    share_chunks(found_.size(), threads, [&](uint64_t begin, uint64_t end) {
      for (uint64_t i = begin; i < end && !is_interrupted(); ++i) {
        const uint64_t run = i / segments_, within = i % segments_ * segment_size;
        const uint64_t run_end = std::min((run + 1) * size, job.plan.quantized), first = run * size + within;
        if (within < size && first < run_end)
          found_[i] = isa().buckets(job.plan.element).statistics(job, first, std::min(segment_size, run_end - first));
      }
    });
  }

  BucketStatistics of(uint64_t run) const {
    BucketStatistics all = BucketStatistics::none();
    for (uint64_t first = 0; first < segments_; first += segments_per_run) {
      BucketStatistics some = BucketStatistics::none();
      const uint64_t end = std::min(first + segments_per_run, segments_);
      for (uint64_t segment = first; segment < end; ++segment) some.add(found_[run * segments_ + segment]);
      all.add(some);
    }
    return all;
  }

 private:
  uint64_t segments_;
  std::vector<BucketStatistics> found_;
};

void fit_buckets(const BucketJob& job, int threads) {
  const BucketPlan& plan = job.plan;
  if (plan.quantized == 0) return;
  if (plan.buckets_offset > 0) {
    const RunStatistics array(job, plan.quantized, threads);
    isa().buckets(job.plan.element).store_array(job, array.of(0));
  }
  if (plan.bucket_bytes == 0 || plan.bucket_size <= segment_size) return;
  const RunStatistics buckets(job, plan.bucket_size, threads);
  for (uint64_t bucket = 0; bucket < plan.buckets; ++bucket)
    isa().buckets(job.plan.element).store_bucket(job, bucket, buckets.of(bucket));
}

// Encodes all chunks; returns how many extra words these have.
uint64_t encode_all_chunks(const BucketJob& job, int threads) {
  const BucketPlan& plan = job.plan;
  const BucketFunctions& functions = isa().buckets(plan.element);
  uint32_t* const extras = extra_words(plan, job.payload);
  if (!plan.has_extras) {  // each chunk has its place
    share_chunks(plan.chunks(), threads,
                 [&](uint64_t begin, uint64_t end) { functions.encode_chunks(job, begin, end, extras); });
    return 0;
  }
  const auto encode = [&](int, uint64_t begin, uint64_t end, uint8_t* out) {
    return sizeof *extras * functions.encode_chunks(job, begin, end, reinterpret_cast<uint32_t*>(out));
  };
  uint64_t* const ends = extras_directory(plan, job.payload);
  const auto placed = [&](uint64_t begin, uint64_t end, uint64_t bytes) {
    for (uint64_t chunk = begin; chunk < end; ++chunk) ends[chunk] += bytes / sizeof *extras;
  };
  const Shares shares = Shares::of(plan.chunks(), threads, min_chunks);
  return encode_in_order(shares, plan.chunk_extras() * sizeof *extras, reinterpret_cast<uint8_t*>(extras), encode,
                         placed) /
         sizeof *extras;
}

// Null where the directory's entries do not decrease and end where the payload does.
const char* directory_fault(const BucketPlan& plan, const uint8_t* payload, uint64_t length) {
  uint64_t before = 0;
  for (uint64_t chunk = 0; chunk < plan.chunks(); ++chunk) {
    uint64_t end;
    memcpy(&end, payload + plan.directory_offset + chunk * sizeof end, sizeof end);
    if (end < before) return directory_unsorted;
    before = end;
  }
  const uint64_t bytes = length - plan.length;
  if (bytes % sizeof(uint32_t) == 0 && before == bytes / sizeof(uint32_t)) return nullptr;
  return before > bytes / sizeof(uint32_t) ? directory_too_long : directory_too_short;
}

// Writes what is between a payload's other parts: put_tail(to) the elements that are stored as they are, and zeros.
template <class PutTail>
void write_rest(const BucketPlan& plan, uint8_t* payload, PutTail put_tail) {
  memset(payload + plan.buckets_end(), 0, plan.buckets_padded() - plan.buckets_end());
  const uint64_t tail_end = plan.tail_offset + plan.tail_bytes();
  put_tail(payload + plan.tail_offset);
  memset(payload + tail_end, 0, plan.tail_padded() - tail_end);
}

}  // namespace

uint64_t encode_buckets(const Codec& codec, const BucketPlan& plan, const void* source, uint8_t* payload, uint64_t seed,
                        int threads) {
  const BucketJob job{codec, plan, source, payload, nullptr, seed};
  memset(payload, 0, plan.buckets_offset);
  fit_buckets(job, threads);
  const uint64_t extras = encode_all_chunks(job, threads);
  write_rest(plan, payload, [&](uint8_t* to) {
    const uint64_t tail_at = plan.quantized * (plan.element.width / 8);
    memcpy(to, static_cast<const uint8_t*>(source) + tail_at, plan.tail_bytes());
  });
  return plan.length + extras * sizeof(uint32_t);
}

void encode_sum_by_chunks(const SumJob& sum, const Codec& codec, const BucketPlan& plan, uint8_t* payload,
                          uint64_t seed, int threads) {
  const auto encode_chunks = [&](uint64_t begin, uint64_t end) {
    alignas(64) uint8_t window[chunk_size * sizeof(double)];  // the elements of a chunk
    for (uint64_t chunk = begin; chunk < end && !is_interrupted(); ++chunk) {
      const uint64_t first = chunk * chunk_size;
      isa().buckets(sum.plan.element).sum(sum, first, std::min<uint64_t>(plan.quantized - first, chunk_size), window);
      // Where an array would begin that had its elements there.
      const auto* const array =
          reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(window) - first * (plan.element.width / 8));
      isa()
          .buckets(plan.element)
          .encode_chunks({codec, plan, array, payload, nullptr, seed}, chunk, chunk + 1, nullptr);
    }
  };
  share_chunks(plan.chunks(), threads, encode_chunks);
  write_rest(plan, payload, [&](uint8_t* to) {
    isa().buckets(sum.plan.element).sum(sum, plan.quantized, plan.count - plan.quantized, to);
  });
}

void sum_buckets(const SumJob& sum, void* target, int threads) {
  const uint64_t item = sum.plan.element.width / 8;
  share_chunks(ceil_div(sum.plan.count, chunk_size), threads, [&](uint64_t begin, uint64_t end) {
    in_steps(begin, end, min_chunks, [&](uint64_t segment, uint64_t segment_end) {
      const uint64_t first = segment * chunk_size, last = std::min(segment_end * chunk_size, sum.plan.count);
      isa().buckets(sum.plan.element).sum(sum, first, last - first, static_cast<uint8_t*>(target) + first * item);
    });
  });
}

const char* length_fault(const BucketPlan& plan, const uint8_t* payload, uint64_t length) {
  if (plan.has_extras ? length < plan.length : length != plan.length)
    return "payload length: not that of so many elements";
  return plan.has_extras ? directory_fault(plan, payload, length) : nullptr;
}

bool decode_buckets(const Codec& codec, const BucketPlan& plan, const uint8_t* payload, uint64_t length, void* target,
                    int threads) {
  if (!is_length_right(plan, payload, length)) return false;
  const BucketJob job{codec, plan, nullptr, const_cast<uint8_t*>(payload), target, 0};
  const bool ok = all_of(Shares::of(plan.chunks(), threads, min_chunks), 0, [&](uint64_t begin, uint64_t end) {
    return isa().buckets(job.plan.element).decode_chunks(job, begin, end);
  });
  const uint64_t tail_at = plan.quantized * (plan.element.width / 8);
  memcpy(static_cast<uint8_t*>(target) + tail_at, payload + plan.tail_offset, plan.tail_bytes());
  return ok;
}

}  // namespace arrcomp::cpu
