// Spreads arrays and their groups over threads, and places the groups' bytes.
#include <atomic>
#include <limits>
#include <memory>

#ifdef __linux__
#include <sched.h>
#include <unistd.h>
#endif

#include "backend.h"
#include "cpu/buckets.h"
#include "cpu/coded_buckets.h"
#include "cpu/driver.h"
#include "cpu/in_order.h"
#include "cpu/predicted.h"
#include "cpu/referenced.h"
#include "cpu/select.h"
#include "floating_point.h"
#include "stream/payload.h"

namespace arrcomp::cpu {
namespace {

Shares group_shares(const Plan& plan, int threads) {
  return Shares::of(plan.groups, threads, min_elements / plan.group_size());
}

uint64_t last_level_cache() {
#ifdef _SC_LEVEL3_CACHE_SIZE
  static const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
  if (bytes > 0) return static_cast<uint64_t>(bytes);
#endif
  return 1 << 25;
}

double range_bound(const EncodeJob& job, double rel, int threads) {
  const Shares shares = group_shares(job.plan, threads);
  struct Range {
    double limits[2] = {std::numeric_limits<double>::max(), std::numeric_limits<double>::lowest()};
  };
  std::vector<Range> ranges(static_cast<size_t>(shares.workers));
  const Isa& isa = cpu::isa();
  run(shares.workers, [&](int worker) {
    const uint64_t first = shares.begin(worker) * job.plan.group_size();
    const uint64_t last = std::min(shares.end(worker) * job.plan.group_size(), job.plan.count);
    in_steps(first, last, min_elements, [&](uint64_t begin, uint64_t end) {
      isa.widen_range(job, begin, end - begin, ranges[static_cast<size_t>(worker)].limits);
    });
  });
  Range all;
  for (const Range& range : ranges) {
    all.limits[0] = std::min(all.limits[0], range.limits[0]);
    all.limits[1] = std::max(all.limits[1], range.limits[1]);
  }
  return relative_bound(rel, all.limits[0], all.limits[1]);
}

void set_target(EncodeJob& job, const GroupSettings& settings, int threads) {
  if (settings.kind == BoundKind::absolute) job.bound = settings.bound;
  if (settings.kind == BoundKind::relative) job.bound = range_bound(job, settings.bound, threads);
  job.bound = quantized_bound(job.plan.element, job.bound);
}

// Encodes all groups; returns the bytes that they take from `out` on.
uint64_t encode_groups(const EncodeJob& job, uint8_t* out, uint32_t* sizes, int threads) {
  const Shares shares = group_shares(job.plan, threads);
  const Isa& isa = cpu::isa();
  const uint64_t scratch_bytes = isa.scratch_bytes(job.plan.element);
  std::vector<std::unique_ptr<std::byte[]>> scratch(static_cast<size_t>(shares.workers));
  for (auto& memory : scratch) memory.reset(new std::byte[scratch_bytes]);
  const auto encode = [&](int worker, uint64_t begin, uint64_t end, uint8_t* to) {
    return isa.encode_groups(job, begin, end, to, sizes, scratch[static_cast<size_t>(worker)].get());
  };
  return encode_in_order(shares, job.plan.group_capacity(), out, encode, [](uint64_t, uint64_t, uint64_t) {});
}

// Calls work(i, threads) for each of `arrays`: first for those that several threads share, one by one, then for all
// others, which the threads take one at a time.
template <class Arrays, class Work>
void for_each_array(const Element& element, const Arrays& arrays, int threads, Work work) {
  std::vector<size_t> small;
  uint64_t elements = 0;
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (arrays.size() == 1 || group_shares(make_plan(element, arrays[i].count), threads).workers > 1) {
      work(i, threads);
    } else {
      small.push_back(i);
      elements += arrays[i].count;
    }
  }
  std::atomic<size_t> next{0};
  run(Shares::of(elements, threads, min_elements).workers, [&](int) {
    for (size_t i = next++; i < small.size(); i = next++) work(small[i], 1);
  });
}

// False where the payload is corrupt.
bool decode_any(const Codec& codec, const Element& element, const DecodeTask& array, int threads) {
  const uint64_t length = length_of(array);
  if (length > array.limit) return false;
  BucketLayout layout;
  if (!bucket_layout(codec, element, layout)) {
    if (has_reference(codec)) return decode_referenced(element, array, length, threads);
    if (is_predicted(codec, array.payload, length, array.count))
      return decode_predicted(element, array.payload, length, array.count, array.target, threads);
    return decode_array(make_plan(element, array.count), codec, array.payload, length, array.target, threads);
  }
  const BucketPlan plan = make_bucket_plan(layout, element, array.count);
  if (layout.byte_codes) return decode_coded_buckets(codec, plan, array.payload, length, array.target, threads);
  return decode_buckets(codec, plan, array.payload, length, array.target, threads);
}

}  // namespace

int threads_for(uint64_t elements, int threads) {
  if (elements < 2 * min_elements) return 1;  // small arrays cannot wait for the system's answer
  return threads == 0 ? available_threads() : threads;
}

int available_threads() {
#ifdef __linux__
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) return CPU_COUNT(&cores);
#endif
  return static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u));
}

void encode(const Codec& codec, const Element& element, std::span<const EncodeTask> arrays, uint64_t* lengths,
            const Seed& seed, int threads) {
  const DefaultFloatingPoint environment;
  threads = threads_for(elements_of(arrays), threads);
  const uint64_t key = seed_value(seed);
  for_each_array(element, arrays, threads, [&](size_t i, int its_threads) {
    const auto& [source, payload, count, axes, reference] = arrays[i];
    uint64_t length;
    if (BucketLayout layout; bucket_layout(codec, element, layout)) {
      const BucketPlan plan = make_bucket_plan(layout, element, count);
      length = layout.byte_codes ? encode_coded_buckets(codec, plan, source, payload, key, its_threads)
                                 : encode_buckets(codec, plan, source, payload, key, its_threads);
    } else {
      length = encode_array(make_plan(element, count), codec, source, payload, key, its_threads, axes, reference);
    }
    memcpy(lengths + i, &length, sizeof length);
  });
}

const char* payload_fault(const Codec& codec, const Element& element, const uint8_t* payload, uint64_t length,
                          uint64_t count) {
  BucketLayout layout;
  if (!bucket_layout(codec, element, layout)) {
    if (has_reference(codec)) return referenced_fault(element, payload, length, count);
    if (is_predicted(codec, payload, length, count)) return predicted_fault(element, payload, length, count);
    return Groups{}.fault_in(make_plan(element, count), codec, payload, length);
  }
  const BucketPlan plan = make_bucket_plan(layout, element, count);
  if (!layout.byte_codes) return length_fault(plan, payload, length);
  if (length < plan.codes_offset) return "payload length: shorter than what is stored for the buckets";
  return Groups{}.fault_in(make_plan(code_element, plan.quantized), code_codec(), payload + plan.codes_offset,
                           length - plan.codes_offset);
}

size_t decode(const Codec& codec, const Element& element, std::span<const DecodeTask> arrays, int threads) {
  const DefaultFloatingPoint environment;
  threads = threads_for(elements_of(arrays), threads);
  if (has_reference(codec)) check_references(element, arrays, threads);
  std::atomic<size_t> corrupt{arrays.size()};
  for_each_array(element, arrays, threads, [&](size_t i, int its_threads) {
    if (decode_any(codec, element, arrays[i], its_threads)) return;
    size_t first = corrupt;
    while (i < first && !corrupt.compare_exchange_weak(first, i)) {
    }
  });
  return corrupt;
}

uint64_t encode_array(const Plan& plan, const Codec& codec, const void* source, uint8_t* payload, uint64_t seed,
                      int threads, const Axes& axes, const void* reference) {
  const GroupSettings settings = group_settings(codec);
  EncodeJob job{plan, source, 0.0, settings.rounded_bits(plan.element), settings, tables(), base_delta_of(codec), seed};
  set_target(job, settings, threads);
  if (has_reference(codec)) return encode_referenced(job, reference, payload, threads);
  const uint64_t capacity = capacity_of_groups(plan.element, plan.count);
  if (const uint64_t length = encode_predicted(job, axes, payload, capacity, threads)) return length;
  return encode_job(job, payload, threads);
}

uint64_t encode_job(const EncodeJob& job, uint8_t* payload, int threads) {
  std::vector<uint32_t> sizes(job.plan.groups);
  if (job.plan.groups > 0) encode_groups(job, payload + job.plan.groups_offset(), sizes.data(), threads);
  return write_payload_head(job.plan, job.bound, sizes, payload);
}

uint64_t write_payload_head(const Plan& plan, double bound, const std::vector<uint32_t>& sizes, uint8_t* payload) {
  const PayloadHeader header = PayloadHeader::of(plan, bound);
  memcpy(payload, &header, sizeof header);
  if (plan.groups == 0) return payload_header_bytes;
  const uint64_t offset = plan.groups_offset();
  memset(payload + payload_header_bytes, 0, offset - payload_header_bytes);
  uint64_t end = 0;
  for (uint64_t g = 0; g < plan.groups; ++g) {
    end += sizes[g];
    set_directory_entry(plan, payload, g, end);
  }
  return offset + end;
}

const char* Groups::fault_in(const Plan& plan, const Codec& codec, const uint8_t* payload, uint64_t length) {
  if (length < payload_header_bytes) return "payload length: shorter than a payload's header";
  PayloadHeader header;
  memcpy(&header, payload, sizeof header);
  if (header.chunks_per_group != plan.chunks_per_group) return "S, chunks per group: not that of so many elements";
  if (header.directory_entry_bytes != plan.directory_entry_bytes)
    return "o, bytes per entry of the directory: not that of so many elements";
  if (!header.fits(plan) || (base_delta_of(codec) != nullptr && header.bound != 0))
    return "bound: not one of this codec and data type";
  if (plan.groups == 0)
    return length == payload_header_bytes ? nullptr : "payload length: more than an empty array takes";
  const uint64_t offset = plan.groups_offset();
  if (length < offset) return "directory: does not fit the payload length";
  bytes = payload + offset;
  bound = header.bound;
  ends.resize(plan.groups);
  uint64_t before = 0;
  for (uint64_t g = 0; g < plan.groups; ++g) {
    ends[g] = directory_entry(plan, payload, g);
    if (ends[g] < before) return directory_unsorted;
    if (ends[g] > length - offset) return directory_too_long;
    before = ends[g];
  }
  return before == length - offset ? nullptr : directory_too_short;
}

bool is_streamed(const Plan& plan, const void* target) {
  constexpr uint64_t least = 1 << 23;  // bytes: smaller arrays need not ask for the cache's size, which takes long
  const uint64_t bytes = plan.count * (plan.element.width / 8);
  return bytes >= least && reinterpret_cast<uintptr_t>(target) % 16 == 0 && bytes > last_level_cache();
}

bool decode_array(const Plan& plan, const Codec& codec, const uint8_t* payload, uint64_t length, void* target,
                  int threads) {
  Groups groups{};
  if (!groups.read(plan, codec, payload, length)) return false;
  const DecodeJob job = groups.job(plan, codec, target, is_streamed(plan, target));
  const Isa& isa = cpu::isa();
  return all_of(group_shares(plan, threads), 0,
                [&](uint64_t begin, uint64_t end) { return isa.decode_groups(job, begin, end); });
}

}  // namespace arrcomp::cpu
